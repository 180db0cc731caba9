import type { ControlPlane } from "../test/support/cluster/control-plane.ts";

interface ApiObject {
  metadata: { name: string };
  status?: { conditions?: { type: string; status: string }[] };
}

const PODS = "/api/v1/namespaces/default/pods";
const LIMIT_MS = 1_200_000;
const CREATIONS_AT_A_TIME = 8;

const isReady = ({ status }: ApiObject) =>
  status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;

/** The API server as an administrator's program uses it; cheaper than kubectl, whose processes would be measured too. */
export class ClusterApi {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async isNodeReady(name: string): Promise<boolean> {
    const response = await this.#fetch(`/api/v1/nodes/${name}`);
    return response.ok && isReady((await response.json()) as ApiObject);
  }

  /** Creates pods and waits until each is reported as Ready. @returns milliseconds from the first creation on */
  async startPods(pods: readonly { metadata: { name: string } }[]): Promise<number> {
    const { resourceVersion } = await this.#list();
    const waiting = new Set(pods.map(({ metadata }) => metadata.name));
    const end = new AbortController();
    const watch = await this.#fetch(`${PODS}?watch=true&resourceVersion=${resourceVersion}`, {
      signal: AbortSignal.any([end.signal, AbortSignal.timeout(LIMIT_MS)]),
    });
    const startedAtMs = performance.now();
    const queue = pods.values();
    const created = Array.from({ length: CREATIONS_AT_A_TIME }, async () => {
      for (const pod of queue) {
        const response = await this.#fetch(PODS, { method: "POST", body: JSON.stringify(pod) });
        if (!response.ok) throw new Error(`a pod is refused: ${await response.text()}`);
      }
    });
    try {
      for await (const { object } of readEvents(watch)) {
        if (isReady(object)) waiting.delete(object.metadata.name);
        if (waiting.size === 0) break;
      }
    } finally {
      end.abort();
    }
    if (waiting.size > 0) throw new Error(`${waiting.size} pods are not Ready, e.g. ${[...waiting][0]}`);
    const tookMs = performance.now() - startedAtMs;
    await Promise.all(created);
    return tookMs;
  }

  /** Deletes all pods of namespace default and waits until they are gone. */
  async deletePods(): Promise<void> {
    const query = "propagationPolicy=Background&gracePeriodSeconds=0";
    await this.#fetch(`${PODS}?${query}`, { method: "DELETE" });
    while ((await this.#list()).count > 0) await Bun.sleep(200);
  }

  async #list(): Promise<{ resourceVersion: string; count: number }> {
    const { metadata, items } = (await (await this.#fetch(PODS)).json()) as {
      metadata: { resourceVersion: string };
      items: unknown[];
    };
    return { resourceVersion: metadata.resourceVersion, count: items.length };
  }

  #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const { cert, key } = this.#plane.administrator;
    const headers = init.body ? { "Content-Type": "application/json" } : {};
    const tls = { cert, key, ca: this.#plane.authority.cert };
    return fetch(`${this.#plane.url}${path}`, { ...init, headers, tls, timeout: false } as RequestInit);
  }
}

/** The events of a watch, until it ends. */
async function* readEvents(response: Response): AsyncGenerator<{ object: ApiObject }> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line) as { object: ApiObject };
  }
}
