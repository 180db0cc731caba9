import type { CoreEvent } from "../base/api/event.ts";
import type { Pod } from "../base/api/pod.ts";
import type { HealthCheck } from "../base/model/health-check.ts";
import type { PodFacts } from "../stats/pod-facts.ts";

/** The kubelet as the servers see it. Read-only and answered from memory: no member waits. */
export interface KubeletView {
  nodeName(): string;
  /** Every pod wanted on this node, with its status, in wire shape and any order; the same list while these are the same. An unchanged pod should be the same object as before. */
  pods(): readonly Pod[];
  /** Events of pods, oldest last occurrence first, without secrets. `revision` grows with every event. */
  events(): { revision: number; items: readonly CoreEvent[] };
  /** Pods with a live sandbox and what is needed to measure them. */
  podFacts(): readonly PodFacts[];
  /** Why the engine cannot be followed; undefined while it can. */
  engineError(): string | undefined;
  /** Cheap; in the order they are listed by `?verbose`. */
  healthChecks(): readonly HealthCheck[];
  /** Effective KubeletConfiguration, with the values of URL headers and other credentials masked. */
  config(): Readonly<Record<string, unknown>>;
  /** `flag=value`, masked as {@link config}. */
  flags(): readonly string[];
  version(): string;
}
