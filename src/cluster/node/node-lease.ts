import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { isConflict, isNotFound } from "../client/api-error.ts";
import { BackOff } from "../client/back-off.ts";
import type { ClusterClient } from "../client/cluster-client.ts";

interface Lease {
  metadata: object;
  spec: { holderIdentity: string; leaseDurationSeconds: number; renewTime: string };
}

interface NodeLeaseDeps {
  client: Pick<ClusterClient, "request">;
  clock: Clock;
  logger: Logger;
  nodeName: string;
  durationSeconds: number;
  /** UID of the Node; undefined before it is known. */
  nodeUid: () => string | undefined;
  /** A renewal has succeeded after one that failed. */
  onRecovered: () => void;
}

const PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const RETRY = { first: 200, longest: 7_000 };
/** Renewals within one duration of the Lease. Source: the kubelet's nodeLeaseRenewIntervalFraction of 0.25. */
const RENEWALS = 4;

/** Renews the Lease of the node: how the cluster knows that the node is alive. */
export class NodeLease {
  readonly #deps: NodeLeaseDeps;
  readonly #backOff = new BackOff(RETRY);
  #latest: Lease | undefined;

  constructor(deps: NodeLeaseDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, durationSeconds, logger, onRecovered } = this.#deps;
    const periodMs = (durationSeconds * 1000) / RENEWALS;
    let isFailing = false;
    while (!signal.aborted) {
      let delayMs = periodMs * (1 + Math.random() * 0.04);
      try {
        await this.#renew(signal);
        if (isFailing) {
          logger.info("The Lease of the node is renewed again");
          onRecovered();
        }
        isFailing = false;
        this.#backOff.reset();
      } catch (error) {
        if (signal.aborted) return;
        if (!isFailing) logger.warn(`Cannot renew the Lease of the node: ${(error as Error).message}`);
        isFailing = true;
        // Another writer, or a Lease that was removed: read it at the next attempt.
        this.#latest = undefined;
        delayMs = this.#backOff.next();
      }
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { client, nodeName, durationSeconds, clock } = this.#deps;
    const path = `${PATH}/${nodeName}`;
    const timeoutMs = Math.max(1000, (durationSeconds * 1000) / RENEWALS);
    const common = { signal, timeoutMs };
    const spec = {
      holderIdentity: nodeName,
      leaseDurationSeconds: durationSeconds,
      renewTime: toMicroTime(clock.now()),
    };
    this.#latest ??= await client.request<Lease>({ path, ...common }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (!this.#latest) {
      const metadata = { name: nodeName, namespace: "kube-node-lease", ...this.#owner() };
      const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
      this.#latest = await client.request<Lease>({ method: "POST", path: PATH, body, ...common });
      return;
    }
    const metadata = { ...this.#latest.metadata, ...this.#owner() };
    const body = { ...this.#latest, metadata, spec: { ...this.#latest.spec, ...spec } };
    try {
      this.#latest = await client.request<Lease>({ method: "PUT", path, body, ...common });
    } catch (error) {
      if (!isConflict(error)) throw error;
      this.#latest = undefined;
      await this.#renew(signal);
    }
  }

  /** The Lease goes with its Node. */
  #owner(): object {
    const { nodeName } = this.#deps;
    const uid = this.#deps.nodeUid();
    return uid === undefined ? {} : { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }] };
  }
}

/** `metav1.MicroTime`. */
const toMicroTime = (time: Date) => time.toISOString().replace("Z", "000Z");
