import type { DesiredState } from "../base/model/desired-state.ts";
import { podRefOf } from "../base/model/pod.ts";
import { type EventRecorder, type EventTarget, nodeTarget, type PodEvent } from "../base/model/pod-event.ts";
import { missingClusterDns } from "../plan/pod-dns.ts";

/** A manifest that is refused although no pod runs by an older text of it. */
export interface RefusedManifest {
  /** Path or masked URL. */
  file: string;
  /** Its first error, with file, line and column. */
  message: string;
}

/**
 * Facts about manifests that are worth an event. A bad edit is an event of its pod; a manifest that never had a pod is one
 * of the node. Pure.
 * @param clusterDns `--cluster-dns`
 */
export function manifestFacts(
  state: DesiredState,
  refused: readonly RefusedManifest[],
  nodeName: string,
  clusterDns: readonly string[],
): { target: EventTarget; event: PodEvent }[] {
  const node = nodeTarget(nodeName);
  const files = new Map<string, string>();
  for (const { file, message } of refused) if (!files.has(file)) files.set(file, message);
  const facts = [...files.values()].map((message) => ({ target: node, event: warning("InvalidManifest", message) }));
  for (const { pod, asksForClusterDns } of state.pods) {
    const target = podRefOf(pod);
    for (const { reason, message } of state.notices?.get(target.uid) ?? []) {
      if (reason === "InvalidManifest" || reason === "DuplicateManifest")
        facts.push({ target, event: warning(reason, message) });
    }
    if (asksForClusterDns && clusterDns.length === 0 && !pod.spec.hostNetwork) {
      facts.push({ target, event: missingClusterDns(pod.metadata) });
    }
  }
  return facts;
}

const warning = (reason: string, message: string): PodEvent => ({ type: "Warning", reason, message, isLogged: true });

interface ManifestEventsDeps {
  recorder: EventRecorder;
  nodeName: string;
  clusterDns: () => readonly string[];
  refused: () => readonly RefusedManifest[];
}

/** Events about one state: more of them displace each other, and the log has every error. */
const MAX_EVENTS = 200;

/** Records events about the manifests of each state. */
export class ManifestEvents {
  readonly #deps: ManifestEventsDeps;
  #known = new Set<string>();

  constructor(deps: ManifestEventsDeps) {
    this.#deps = deps;
  }

  report(state: DesiredState): void {
    const { recorder, nodeName, clusterDns, refused } = this.#deps;
    const known = new Set<string>();
    let left = MAX_EVENTS;
    for (const { target, event } of manifestFacts(state, refused(), nodeName, clusterDns())) {
      const key = `${target.uid}\0${event.reason}\0${event.message}`;
      known.add(key);
      if (!this.#known.has(key) && left-- > 0) recorder.record(target, event);
    }
    this.#known = known;
  }
}
