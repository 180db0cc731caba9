import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { PodUID } from "../../base/model/identity.ts";

interface PodVersionsDeps {
  /** An unchanged pod is the same object as before. */
  pods: () => readonly Pod[];
  /** Events whose last occurrence came after this version, in that order. */
  eventsAfter: (version: number) => readonly CoreEvent[];
}

interface Version {
  pod: Pod;
  /** Version of its newest event. */
  event: number;
  shown: Pod;
}

/**
 * The pods of the node, each as another object when it, or why it is not ready, may have changed: a pod that is not ready is
 * explained with its events, which do not change its status.
 */
export class PodVersions {
  readonly #deps: PodVersionsDeps;
  readonly #versions = new Map<PodUID, Version>();
  readonly #newest = new Map<PodUID, number>();
  #seen = 0;

  constructor(deps: PodVersionsDeps) {
    this.#deps = deps;
  }

  list(): readonly Pod[] {
    for (const { metadata, involvedObject } of this.#deps.eventsAfter(this.#seen)) {
      this.#seen = Number(metadata.resourceVersion);
      this.#newest.set(involvedObject.uid, this.#seen);
    }
    const pods = this.#deps.pods();
    const uids = new Set(pods.map(uidOf));
    for (const uid of this.#versions.keys()) if (!uids.has(uid)) this.#versions.delete(uid);
    for (const uid of this.#newest.keys()) if (!uids.has(uid)) this.#newest.delete(uid);
    return pods.map((pod) => this.#versionOf(pod));
  }

  #versionOf(pod: Pod): Pod {
    if (isReady(pod)) return pod;
    const uid = uidOf(pod);
    const event = this.#newest.get(uid) ?? 0;
    const known = this.#versions.get(uid);
    if (known?.pod === pod && known.event === event) return known.shown;
    const shown = known?.pod === pod ? { ...pod } : pod;
    this.#versions.set(uid, { pod, event, shown });
    return shown;
  }
}

const uidOf = ({ metadata }: Pod): PodUID => metadata.uid ?? "";

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
