import { join } from "node:path";
import { type AnyObject, Kubectl } from "../kubectl.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { conditionOf, isReady } from "./cluster-objects.ts";
import { KUBERNETES } from "./cluster-tools.ts";
import type { ControlPlane } from "./control-plane.ts";

/** kubectl 1.20.2 of a control plane's administrator. */
export class ClusterKubectl extends Kubectl {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    super(join(KUBERNETES, "kubectl"), plane.adminConfig, plane.directory);
    this.#plane = plane;
  }

  pod(name: string): Promise<AnyObject> {
    return this.json(`get pod ${name}`);
  }

  readyPod(name: string): Promise<AnyObject> {
    return this.until(`pod "${name}" to be Ready`, async () => {
      const pod = await this.pod(name);
      return isReady(pod) && pod;
    });
  }

  readyPods(app: string, count: number, limitMs?: number): Promise<AnyObject[]> {
    return this.until(
      `${count} Ready pods of "${app}"`,
      async () => {
        const pods = await this.list("pods", "-l", `app=${app}`);
        return pods.length === count && pods.every(isReady) && pods;
      },
      limitMs,
    );
  }

  noneOf(kind: string, app: string, limitMs?: number): Promise<true> {
    const isNone = async () => (await this.list(kind, "-l", `app=${app}`)).length === 0;
    return this.until(`no ${kind} of "${app}"`, isNone, limitMs);
  }

  readyNode(name: string): Promise<AnyObject> {
    return this.until(`node "${name}" to be Ready`, async () => {
      const node = await this.json(`get node ${name}`);
      return conditionOf(node, "Ready") === "True" && node;
    });
  }

  lease(node: string): Promise<AnyObject> {
    return this.json(`get lease -n kube-node-lease ${node}`);
  }

  /** Waits until the node has renewed its Lease. @param before when it had before the wait */
  async renewal(node: string, before?: string): Promise<void> {
    const then = before ?? (await this.lease(node)).spec.renewTime;
    await this.until("the renewal of the lease", async () => (await this.lease(node)).spec.renewTime !== then);
  }

  /** Waits until an object of namespace default has an event of that reason whose message contains the text. */
  untilEvent(name: string, reason: string, text = ""): Promise<true> {
    return this.until(`the event ${reason} of "${name}"`, async () => {
      const events = await this.list("events", `--field-selector=involvedObject.name=${name},reason=${reason}`);
      return events.some(({ message }: AnyObject) => message.includes(text));
    });
  }

  /** A failure shows the pods and the control plane's logs. */
  override until: Kubectl["until"] = (what, attempt, limitMs = PATIENCE_MS) =>
    until(what, attempt, { limitMs, details: () => this.#details() });

  async #details(): Promise<string> {
    const shown = await Promise.all(
      ["get nodes,pods -A -o wide", "get events -A"].map(async (line) => {
        const { stdout, stderr } = await this.run(line.split(" "));
        return `${stdout}${stderr}`.trimEnd().split("\n").slice(-30).join("\n");
      }),
    );
    return [...shown, this.#plane.diagnosis()].join("\n");
  }
}
