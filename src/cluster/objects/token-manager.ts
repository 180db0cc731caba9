import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { TokenSpec } from "../../base/model/cluster-connection.ts";
import type { PodUID } from "../../base/model/pod.ts";
import type { ClusterClient } from "../client/cluster-client.ts";

interface TokenManagerDeps {
  client: Pick<ClusterClient, "request">;
  clock: Clock;
  /** Tokens of a pod are to be written again. */
  onDue: () => void;
}

interface Kept {
  token: string;
  expiresAtMs: number;
  refreshAtMs: number;
  pod: PodUID;
}

/** Part of a token's life after which a new one is requested, and the longest time. Source: the kubelet's token manager. */
const REFRESH_PART = 0.8;
const MAX_AGE_MS = 24 * 3_600_000;
/** Distance between two attempts to replace a token. */
const RETRY_MS = 30_000;

/** Tokens of service accounts, each bound to its pod; kept while they last, and replaced in time. */
export class TokenManager {
  readonly #deps: TokenManagerDeps;
  readonly #kept = new Map<string, Kept>();
  readonly #epochs = new Map<PodUID, number>();
  readonly #retrying = new Set<PodUID>();
  #isStopped = false;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: TokenManagerDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  /** Changes when the tokens of the pod are to be written again; undefined for a pod without any. */
  revisionOf(uid: PodUID): string | undefined {
    const epoch = this.#epochs.get(uid);
    return epoch === undefined ? undefined : String(epoch);
  }

  /** Forgets tokens of pods that are not there any more. */
  retain(uids: ReadonlySet<PodUID>): void {
    for (const [key, { pod }] of this.#kept) if (!uids.has(pod)) this.#kept.delete(key);
    for (const uid of this.#epochs.keys()) if (!uids.has(uid)) this.#epochs.delete(uid);
  }

  /** @throws ApiStatusError, ApiUnreachableError when there is none and none can be requested */
  async tokenFor({ metadata, spec }: Pod, requested: TokenSpec): Promise<string> {
    const { clock } = this.#deps;
    const uid = metadata.uid ?? "";
    const key = JSON.stringify([uid, requested.audience, requested.expirationSeconds]);
    const known = this.#kept.get(key);
    const nowMs = clock.monotonicMs();
    if (known && nowMs < known.refreshAtMs) return known.token;
    try {
      const kept = await this.#request(metadata, spec.serviceAccountName ?? "default", requested);
      this.#kept.set(key, kept);
      if (!this.#epochs.has(uid)) this.#epochs.set(uid, 0);
      this.#arm();
      return kept.token;
    } catch (error) {
      if (!known || nowMs >= known.expiresAtMs) {
        this.#retry(uid);
        throw error;
      }
      known.refreshAtMs = nowMs + RETRY_MS;
      this.#arm();
      return known.token;
    }
  }

  async #request(
    metadata: Pod["metadata"],
    account: string,
    { audience, expirationSeconds }: TokenSpec,
  ): Promise<Kept> {
    const { client, clock } = this.#deps;
    const { name = "", namespace = "default", uid = "" } = metadata;
    const { status } = await client.request<{ status: { token: string; expirationTimestamp: string } }>({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          audiences: audience === "" ? [] : [audience],
          expirationSeconds,
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
        },
      },
    });
    const lifeMs = Date.parse(status.expirationTimestamp) - clock.now().getTime();
    const nowMs = clock.monotonicMs();
    // With a wrong clock every token seems expired or long-lived: the requested lifetime counts then.
    const soundMs = lifeMs > 0 && lifeMs <= expirationSeconds * 2000 ? lifeMs : expirationSeconds * 1000;
    return {
      token: status.token,
      expiresAtMs: nowMs + soundMs,
      refreshAtMs: nowMs + Math.min(soundMs * REFRESH_PART, MAX_AGE_MS),
      pod: uid,
    };
  }

  /** A volume may have a token of an earlier process: it is asked for again, also when its pod runs. */
  #retry(uid: PodUID): void {
    if (this.#retrying.has(uid)) return;
    this.#retrying.add(uid);
    this.#deps.clock.schedule(RETRY_MS, () => {
      this.#retrying.delete(uid);
      if (this.#isStopped) return;
      this.#epochs.set(uid, (this.#epochs.get(uid) ?? 0) + 1);
      this.#deps.onDue();
    });
  }

  #arm(): void {
    const { clock } = this.#deps;
    this.#cancelTimer?.();
    const nextMs = Math.min(...[...this.#kept.values()].map(({ refreshAtMs }) => refreshAtMs));
    if (!Number.isFinite(nextMs)) return;
    this.#cancelTimer = clock.schedule(Math.max(1000, nextMs - clock.monotonicMs()), () => this.#onDue());
  }

  #onDue(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const due = new Set(
      [...this.#kept.values()].filter(({ refreshAtMs }) => refreshAtMs <= nowMs).map(({ pod }) => pod),
    );
    for (const uid of due) this.#epochs.set(uid, (this.#epochs.get(uid) ?? 0) + 1);
    // Requests of the pods set the timer again; pods that are gone make none.
    this.#cancelTimer = this.#deps.clock.schedule(RETRY_MS, () => this.#arm());
    if (due.size > 0) this.#deps.onDue();
  }
}
