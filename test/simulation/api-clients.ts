import { toObjects, type WantedPod } from "./desired.ts";
import { findWrongStatus } from "./watchers.ts";
import type { World } from "./world.ts";

/** A response of the local API; undefined: there was none. */
type Answer = { status: number; body: ApiBody } | undefined;

interface ApiBody {
  metadata?: {
    name?: string;
    uid?: string;
    deletionTimestamp?: string;
    ownerReferences?: { kind: string; uid: string }[];
  };
  items?: ApiBody[];
  [field: string]: unknown;
}

interface Write {
  method: "PATCH" | "PUT";
  type: string;
  body: object;
}

type Policy = "Background" | "Foreground" | "Orphan";

/** People and controllers ask again after this time, until they have an answer. */
const RETRY_MS = 10_000;
/** Pods of a Deployment that was made again are left alone from the orphaning deletion until this much after it. */
const ADOPTED_MS = 5 * 60_000;

const CONFIG = "/api/v1/namespaces/default/configmaps/settings";
const LISTS = {
  deployments: "/apis/apps/v1/deployments",
  replicaSets: "/apis/apps/v1/replicasets",
  statefulSets: "/apis/apps/v1/statefulsets",
  daemonSets: "/apis/apps/v1/daemonsets",
  pods: "/api/v1/pods",
};
type Lists = Record<keyof typeof LISTS, readonly ApiBody[]>;

/** Clients of the local API, which write until they are answered. */
export class ApiClients {
  readonly #world: World;
  readonly #wanted: Map<string, WantedPod>;
  readonly #fail: (rule: string, message: string) => void;
  /** The last thing that someone wants of an app: what was wanted before is not tried again. */
  readonly #latest = new Map<string, number>();
  #wishes = 0;
  /** Deployments that were deleted without their pods and are made again, with the times in between. */
  readonly #orphaned = new Map<string, { uids: ReadonlySet<string>; fromMs: number; untilMs: number }>();
  /** Values of a ConfigMap that the API accepted last, by client; undefined: whether a newer one was accepted is not known. */
  readonly #config = new Map<string, string | undefined>();
  /** Clients that wait for the answer to their write. */
  readonly #writing = new Set<string>();
  #shownConfig: Readonly<Record<string, string>> = {};
  /** Last lists of the API; undefined: it did not answer. */
  #shown: Lists | undefined;

  constructor(world: World, wanted: Map<string, WantedPod>, fail: (rule: string, message: string) => void) {
    this.#world = world;
    this.#wanted = wanted;
    this.#fail = fail;
  }

  /** Server-side apply of what has replicas, and of its Service. */
  apply(pod: WantedPod): void {
    this.#untilDone(pod.app, async () => {
      for (const object of toObjects(pod)) {
        const path = `${pathOf(object.kind, pod.app)}?fieldManager=person&force=true`;
        const answer = await this.#ask("PATCH", path, object, "application/apply-patch+yaml");
        if (answer?.status !== 200 && answer?.status !== 201) return false;
        // A write to an object in deletion goes with it.
        if (answer.body.metadata?.deletionTimestamp !== undefined) return false;
      }
      this.#touch(pod);
      return true;
    });
  }

  scale(pod: WantedPod): void {
    this.#untilDone(pod.app, async () => {
      const path = `${pathOf(kindOf(pod), pod.app)}/scale?fieldManager=scaler`;
      const body = { spec: { replicas: pod.replicas } };
      const answer = await this.#ask("PATCH", path, body, "application/merge-patch+json");
      const isBeingDeleted = this.#orphaned.get(pod.app)?.untilMs === Number.POSITIVE_INFINITY;
      if (answer?.status === 404 || (answer?.status === 200 && isBeingDeleted)) this.apply(pod);
      else if (answer?.status !== 200) return false;
      this.#touch(pod);
      return true;
    });
  }

  remove(pod: WantedPod, policy: Policy): void {
    const { app } = pod;
    this.#untilDone(app, async () => {
      if (!(await this.#delete(kindOf(pod), app, policy))) return false;
      for (const kind of ["Secret", "ConfigMap", "Service"])
        if (!(await this.#delete(kind, app, "Background"))) return false;
      return true;
    });
  }

  /** Deletes a Deployment but not its pods, and makes it again: no pod is to notice. @param uids of its pods */
  orphan(pod: WantedPod, uids: ReadonlySet<string>, afterMs: number): void {
    const { time } = this.#world;
    this.#orphaned.set(pod.app, { uids, fromMs: time.nowMs, untilMs: Number.POSITIVE_INFINITY });
    this.#untilDone(pod.app, async () => {
      // It is there until it is known which pods it leaves behind.
      const answer = await this.#ask("DELETE", pathOf(kindOf(pod), pod.app), { propagationPolicy: "Orphan" });
      if (answer?.status !== 404 && answer?.body.kind !== "Status") return false;
      time.after(afterMs, () => {
        const now = this.#wanted.get(pod.app);
        if (now) this.apply(now);
        this.#orphaned.set(pod.app, { uids, fromMs: pod.changedMs, untilMs: time.nowMs + ADOPTED_MS });
      });
      return true;
    });
  }

  /** Several clients write one ConfigMap at once. Nothing else follows from it: only its own write keeps a value. */
  configure(value: string): void {
    for (const client of Object.keys(WRITES)) void this.#writeKey(client, value);
  }

  async #writeKey(client: string, value: string): Promise<void> {
    if (this.#writing.has(client)) return;
    this.#writing.add(client);
    this.#config.set(client, undefined);
    const key = client.replaceAll(" ", "-");
    let answer: Answer;
    // A refused replacement is made again from what is there now.
    for (let attempt = 0; attempt < 5 && (attempt === 0 || answer?.status === 409); attempt++) {
      const read = client === "replaces" ? await this.#ask("GET", CONFIG) : undefined;
      const write = WRITES[client]?.(key, value, read?.body ?? {});
      const { method = "PUT", type, body } = write ?? {};
      answer = await this.#ask(method, `${CONFIG}?fieldManager=${key}`, body, type);
    }
    if (answer?.status === 200 || answer?.status === 201) this.#config.set(client, value);
    this.#writing.delete(client);
  }

  /** Two clients write one object, the second with the version that it read before the first wrote. */
  async writeStale(pod: WantedPod): Promise<void> {
    const path = pathOf(kindOf(pod), pod.app);
    const read = await this.#ask("GET", path);
    if (read?.status !== 200) return;
    const touched = { metadata: { annotations: { touched: String(this.#world.time.nowMs) } } };
    const first = await this.#ask("PATCH", path, touched, "application/merge-patch+json");
    if (first?.status !== 200) return;
    const second = await this.#ask("PUT", path, read.body);
    if (second?.status === 200) this.#fail("stale write", `an old version of ${path} replaced a newer one`);
  }

  /** @returns whether it was accepted */
  async restartPod(name: string): Promise<boolean> {
    const path = `/apis/kubelet-ts.io/v1/namespaces/default/pods/${name}/restart`;
    return (await this.#ask("POST", path, {}))?.status === 200;
  }

  /** @returns whether it was accepted */
  async evictPod(name: string): Promise<boolean> {
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } };
    return (await this.#ask("POST", `/api/v1/namespaces/default/pods/${name}/eviction`, body))?.status === 201;
  }

  /** @param onDone called when it was accepted */
  cordon(unschedulable: boolean, onDone: () => void): void {
    this.#untilDone("node", async () => {
      const path = `/api/v1/nodes/${this.#world.currentName}`;
      const answer = await this.#ask("PATCH", path, { spec: { unschedulable } }, "application/merge-patch+json");
      if (answer?.status === 200) onDone();
      return answer?.status === 200;
    });
  }

  /** @returns whether it was accepted */
  async deletePod(name: string): Promise<boolean> {
    return (await this.#ask("DELETE", `/api/v1/namespaces/default/pods/${name}`))?.status === 200;
  }

  /** Whether a stop of a pod now would be by an orphaning deletion. */
  isOrphaned({ app, changedMs }: WantedPod): boolean {
    const orphaned = this.#orphaned.get(app);
    return orphaned !== undefined && this.#world.time.nowMs < orphaned.untilMs && changedMs <= orphaned.fromMs;
  }

  /** Whether a pod was left behind by such a deletion. */
  isLeftBehind(uid: string): boolean {
    return [...this.#wanted.values()].some(
      (pod) => this.isOrphaned(pod) && this.#orphaned.get(pod.app)?.uids.has(uid) === true,
    );
  }

  /** Reads what the API shows, for {@link findWrong}. */
  async look(): Promise<void> {
    this.#shown = undefined;
    const [deployments, replicaSets, statefulSets, daemonSets, pods] = await Promise.all(
      Object.values(LISTS).map(async (path) => (await this.#ask("GET", path))?.body.items),
    );
    const config = await this.#ask("GET", CONFIG);
    this.#shownConfig = (config?.body.data as Record<string, string> | undefined) ?? {};
    if (deployments && replicaSets && statefulSets && daemonSets && pods)
      this.#shown = { deployments, replicaSets, statefulSets, daemonSets, pods };
  }

  /** Long after the last fault. @returns what is wrong */
  findWrong(): string | undefined {
    if (!this.#world.hasApi) return undefined;
    if (!this.#shown) return "the local API does not answer";
    for (const [client, value] of this.#config) {
      const shown = this.#shownConfig[client.replaceAll(" ", "-")];
      if (value !== undefined && value !== shown)
        return `ConfigMap settings has ${shown} instead of ${value} of a client that ${client}, which was accepted`;
    }
    const { deployments, replicaSets, statefulSets, daemonSets, pods } = this.#shown;
    const kinds = { Deployment: deployments, StatefulSet: statefulSets, DaemonSet: daemonSets };
    for (const [kind, objects] of Object.entries(kinds)) {
      const those = [...this.#wanted.values()].filter((pod) => pod.replicas !== undefined && kindOf(pod) === kind);
      const wanted = those.map(({ app }) => app).sort();
      const found = objects.map(({ metadata }) => metadata?.name ?? "").sort();
      if (`${found}` !== `${wanted}`) return `the API shows ${kind}s ${found} instead of ${wanted}`;
    }
    const all = [...deployments, ...statefulSets, ...daemonSets, ...replicaSets, ...pods];
    const ending = all.find(({ metadata }) => metadata?.deletionTimestamp !== undefined);
    if (ending) return `${ending.metadata?.name} is still being deleted`;
    const byKind = Object.entries({ ...kinds, ReplicaSet: replicaSets });
    const owners = new Set(byKind.flatMap(([kind, those]) => those.map(({ metadata }) => `${kind} ${metadata?.uid}`)));
    const isLost = ({ metadata }: ApiBody) =>
      metadata?.ownerReferences?.some(
        ({ kind, uid }) =>
          /^(ReplicaSet|Deployment|StatefulSet|DaemonSet)$/.test(kind) && !owners.has(`${kind} ${uid}`),
      );
    const lost = all.find(isLost) ?? replicaSets.find(({ metadata }) => !metadata?.ownerReferences?.length);
    return (lost && `${lost.metadata?.name} has no owner`) ?? findWrongStatus(this.#world, pods);
  }

  /** The edit counts from its acceptance on. */
  #touch({ app }: WantedPod): void {
    const now = this.#wanted.get(app);
    if (now && !this.isOrphaned(now)) this.#wanted.set(app, { ...now, changedMs: this.#world.time.nowMs });
  }

  async #delete(kind: string, app: string, propagationPolicy: Policy): Promise<boolean> {
    const answer = await this.#ask("DELETE", pathOf(kind, app), { propagationPolicy });
    return answer?.status === 200 || answer?.status === 202 || answer?.status === 404;
  }

  /** Tries until it works, or another wish replaces this one. */
  #untilDone(app: string, attempt: () => Promise<boolean>): void {
    const wish = ++this.#wishes;
    this.#latest.set(app, wish);
    const run = () => {
      if (this.#latest.get(app) !== wish) return;
      void attempt().then((isDone) => {
        if (!isDone) this.#world.time.after(RETRY_MS, run);
      });
    };
    run();
  }

  async #ask(method: string, path: string, body?: object, type = "application/json"): Promise<Answer> {
    const answer = await this.#world.ask(method, path, body, type);
    this.#world.note(`client: ${method} ${path}: ${answer?.status ?? "no answer"}`, method !== "GET");
    return answer && { status: answer.status, body: JSON.parse(answer.text) as ApiBody };
  }
}

const pathOf = (kind: string, name: string): string =>
  `/${/^(Deployment|StatefulSet|DaemonSet)$/.test(kind) ? "apis/apps" : "api"}/v1/namespaces/default/${kind.toLowerCase()}s/${name}`;

const kindOf = ({ kind }: WantedPod): string => kind ?? "Deployment";

/** Ways in which a client may write its own key of a ConfigMap. A client that replaces the object has read it first. */
const WRITES: Readonly<Record<string, (key: string, value: string, read: ApiBody) => Write>> = {
  applies: (key, value) => ({
    method: "PATCH",
    type: "application/apply-patch+yaml",
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { [key]: value } },
  }),
  merges: (key, value) => ({ method: "PATCH", type: "application/merge-patch+json", body: { data: { [key]: value } } }),
  patches: (key, value) => ({
    method: "PATCH",
    type: "application/json-patch+json",
    body: [{ op: "add", path: `/data/${key}`, value }],
  }),
  "merges by strategy": (key, value) => ({
    method: "PATCH",
    type: "application/strategic-merge-patch+json",
    body: { data: { [key]: value } },
  }),
  replaces: (key, value, read) => ({
    method: "PUT",
    type: "application/json",
    body: { ...read, data: { ...(read.data as object), [key]: value } },
  }),
};
