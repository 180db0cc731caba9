import type { WantedPod } from "./desired.ts";
import type { ModelContainer } from "./engine-model.ts";
import type { World } from "./world.ts";

const LABEL_UID = "io.kubernetes.pod.uid";
/** Another pod is made, and runs, by then. */
const REPLACED_MS = 2 * 60_000;
/** People and controllers ask again after this time, until they have an answer. */
const RETRY_MS = 10_000;

interface ReleasedPodsDeps {
  world: World;
  wanted: ReadonlyMap<string, WantedPod>;
  /** Pods of an app that work and belong to it, by uid. */
  workingPods(pod: WantedPod): ReadonlyMap<string, string>;
  /** A person changes what there is of an app. */
  noteTouch(app: string): void;
  /** Something was wrong within the last hour. */
  isDisturbed(): boolean;
  fail(rule: string, message: string): void;
}

/**
 * Pods of Deployments whose label a client took away (docs/workloads.md): each runs on as a pod of its own, and its Deployment
 * makes another one, until a client deletes the pod or gives the label back.
 */
export class ReleasedPods {
  readonly #deps: ReleasedPodsDeps;
  readonly #uids = new Set<string>();

  constructor(deps: ReleasedPodsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#uids.size;
  }

  has({ labels }: Pick<ModelContainer, "labels">): boolean {
    return this.#uids.has(labels[LABEL_UID] ?? "");
  }

  /** @param container of the pod. @param end how it ends, after a while */
  async release(
    pod: WantedPod,
    { labels }: ModelContainer,
    end: "delete" | "give back",
    afterMs: number,
  ): Promise<void> {
    const { world, noteTouch } = this.#deps;
    const path = `/api/v1/namespaces/default/pods/${labels["io.kubernetes.pod.name"]}`;
    const uid = labels[LABEL_UID] ?? "";
    noteTouch(pod.app);
    // Without an answer it is not known whose pod it is: then it is deleted.
    this.#uids.add(uid);
    const isAccepted = await this.#label(path, null);
    noteTouch(pod.app);
    if (isAccepted) this.#expectAnother(pod, uid);
    const finish = async () => {
      noteTouch(pod.app);
      const isDone =
        end === "give back" && isAccepted && this.#deps.wanted.has(pod.app)
          ? await this.#label(path, pod.app)
          : await this.#ask("DELETE", path);
      if (!isDone) return void world.time.after(RETRY_MS, () => void finish());
      noteTouch(pod.app);
      this.#uids.delete(uid);
    };
    world.time.after(isAccepted ? afterMs : RETRY_MS, () => void finish());
  }

  #expectAnother(pod: WantedPod, uid: string): void {
    const { world, wanted, workingPods, isDisturbed, fail } = this.#deps;
    const isSame = () => wanted.get(pod.app) === pod && this.#uids.has(uid) && !isDisturbed();
    world.time.after(REPLACED_MS, () => {
      if (!isSame()) return;
      const count = workingPods(pod).size;
      if (count !== pod.replicas) fail("release", `${count} pods of ${pod.app} work after one of them was released`);
      const isUp = world.ownRunning().some(({ labels }) => labels[LABEL_UID] === uid);
      if (!isUp) fail("release", `pod ${uid} of ${pod.app} does not run on, although it was released`);
    });
  }

  #label(path: string, app: string | null): Promise<boolean> {
    return this.#ask("PATCH", path, { metadata: { labels: { app } } });
  }

  async #ask(method: string, path: string, body?: object): Promise<boolean> {
    const answer = await this.#deps.world.ask(method, path, body, "application/merge-patch+json");
    this.#deps.world.note(`client: ${method} ${path}: ${answer?.status ?? "no answer"}`);
    return answer?.status === 200 || answer?.status === 404;
  }
}
