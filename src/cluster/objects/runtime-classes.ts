import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { type ObjectOfApi, Reflector } from "../client/reflector.ts";

interface ApiRuntimeClass extends ObjectOfApi {
  handler: string;
}

interface RuntimeClassesDeps {
  client: Pick<ClusterClient, "request" | "watch" | "reachability">;
  clock: Clock;
  /** Handlers by class that an earlier process knew. */
  stored: Persisted<readonly RuntimeClassEntry[]>;
}

export type RuntimeClassEntry = readonly [name: string, handler: string];

/** A class that is not known by then is a failure; the pod is tried again. */
const LIST_WITHIN_MS = 5_000;
/** Name of the default runtime of clusters on Docker. Source: dockershim. */
const DEFAULT_HANDLER = "docker";

/**
 * RuntimeClasses of the cluster. They are read when the first pod names one, and watched from then on; those of an earlier
 * process count until the API server has answered.
 */
export class RuntimeClasses {
  readonly #deps: RuntimeClassesDeps;
  readonly #reflector: Reflector<ApiRuntimeClass>;
  readonly #listed = Promise.withResolvers<void>();

  constructor(deps: RuntimeClassesDeps) {
    this.#deps = deps;
    this.#reflector = new Reflector<ApiRuntimeClass>({
      client: deps.client,
      clock: deps.clock,
      path: "/apis/node.k8s.io/v1/runtimeclasses",
      onChange: (reflector) => {
        deps.stored.write(reflector.list().map(({ metadata, handler }) => [metadata.name, handler] as const));
        this.#listed.resolve();
      },
    });
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }

  /** The engine's runtime for a pod; "" = the default one. @throws Error while there is no such class */
  async handlerOf({ spec }: Pod): Promise<string> {
    const { clock, stored } = this.#deps;
    const name = spec.runtimeClassName;
    if (!name) return "";
    this.#reflector.start();
    if (!this.#reflector.isListed) {
      const limit = new AbortController();
      await Promise.race([this.#listed.promise, clock.sleep(LIST_WITHIN_MS, limit.signal).catch(() => {})]);
      limit.abort();
    }
    const { isListed } = this.#reflector;
    const handler = isListed
      ? this.#reflector.get(undefined, name)?.handler
      : stored.read()?.find(([known]) => known === name)?.[1];
    if (handler === undefined) {
      if (isListed) throw new Error(`runtimeclass.node.k8s.io "${name}" not found`);
      throw new Error(`failed to lookup RuntimeClass ${name}: the API server has not answered`);
    }
    return handler === DEFAULT_HANDLER ? "" : handler;
  }
}
