import type * as v from "valibot";
import { hasCondition } from "../../base/api/meta.ts";
import { BackOff } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { type EventRecorder, nodeTarget, type PodEvent } from "../../base/model/pod-event.ts";
import { ApiStatusError, isConflict, isNotFound } from "../client/api-error.ts";
import { type ClusterClient, MERGE_PATCH, STRATEGIC_MERGE_PATCH } from "../client/cluster-client.ts";
import { ObjectSchema, Reflector } from "../client/reflector.ts";
import {
  type ApiNode,
  computeAdoption,
  computeNodeStatusPatch,
  conditionEvents,
  findReboot,
  isStatusChanged,
  type RegistrationSettings,
  toNewNode,
  toReportedNode,
  withExtendedResources,
} from "./node-plan.ts";

interface NodeAgentDeps {
  client: ClusterClient;
  /** For the status and the Lease, without a limit: other requests that wait for their turn must not make the node seem dead. */
  heartbeats: Pick<ClusterClient, "request">;
  clock: Clock;
  logger: Logger;
  nodeName: string;
  settings: RegistrationSettings & {
    registerNode: boolean;
    nodeStatusUpdateFrequencyMs: number;
    nodeStatusReportFrequencyMs: number;
    nodeLeaseDurationSeconds: number;
  };
  node: ReportedNode;
  recorder: EventRecorder;
}

/** This machine, as the Node object shows it. */
export interface ReportedNode {
  /** The node as it is now, as `v1.Node`. */
  readNode(): Promise<object>;
}

const RETRY = { first: 200, longest: 7_000 };
const STATUS_TIMEOUT_MS = 10_000;
/** How long an existing Node stays as it is after a start, while the engine and the network have not answered yet. */
const SETTLE_MS = 5_000;

/** Keeps the Node object of this machine: creates it, or takes over an existing one; its status; its Lease. */
export class NodeAgent {
  readonly #deps: NodeAgentDeps;
  readonly #reflector: Reflector<ApiNode>;
  readonly #lease: NodeLease;
  readonly #registered = Promise.withResolvers<void>();
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #uid: string | undefined;
  /** The Node as the registration found or made it, or the last patch of its status; counts until the watch is newer. */
  #found: ApiNode | undefined;
  /** The Node of the watch when its status was patched: {@link #found} is newer. */
  #outdated: ApiNode | undefined;
  /** Status of this machine at the registration. */
  #registeredStatus: ApiNode["status"];
  #isCreated = false;
  #isUnschedulable = false;
  #wake = Promise.withResolvers<void>();
  #isFailing = false;
  /** Called when the Node of the API has changed. */
  onChange = () => {};

  constructor(deps: NodeAgentDeps) {
    const { client, clock, nodeName } = deps;
    this.#deps = deps;
    this.#reflector = new Reflector<ApiNode>({
      client,
      clock,
      schema: ObjectSchema as v.GenericSchema<unknown, ApiNode>,
      path: "/api/v1/nodes",
      query: { fieldSelector: `metadata.name=${nodeName}` },
      onChange: () => {
        const { node } = this;
        if (!node) return void this.statusChanged();
        this.#uid = node.metadata.uid;
        const { unschedulable = false } = node.spec;
        if (unschedulable !== this.#isUnschedulable) {
          this.#isUnschedulable = unschedulable;
          this.#recordStatus(unschedulable ? "NodeNotSchedulable" : "NodeSchedulable");
        }
        this.onChange();
      },
    });
    this.#lease = new NodeLease(deps, () => this.#uid);
  }

  /** The Node of the API; undefined while it is not known. */
  get node(): ApiNode | undefined {
    return this.#reflector.get(undefined, this.#deps.nodeName);
  }

  /** Addresses of the node, as its status has them or will have them. */
  async addresses(): Promise<readonly { address: string }[]> {
    const { status = {} } = await this.#readNode();
    return this.#withOthers(status, this.node).addresses ?? [];
  }

  /** Resolves when the Node exists. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  /** Checks the status now: a condition may have changed. */
  statusChanged(): void {
    this.#wake.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { settings, logger, nodeName } = this.#deps;
    signal.addEventListener("abort", () => void this.#reflector.stop(), { once: true });
    await this.#register(signal);
    if (signal.aborted) return;
    this.#record({ type: "Normal", reason: "Starting", message: "Starting kubelet." });
    // A Node that was Ready when it was created has no transition that would say so.
    const created = this.#isCreated ? { conditions: [{ type: "Ready", status: "False" }] } : undefined;
    this.#recordConditions(created, this.#registeredStatus);
    logger.info(`Node "${nodeName}" is registered at the API server`);
    this.#reflector.start();
    this.#registered.resolve();
    void this.#lease.run(signal);
    if (!this.#isCreated && !hasCondition(this.#registeredStatus, "Ready")) await this.#pause(SETTLE_MS, signal);
    while (!signal.aborted) {
      // A change while the status is being reported is reported next.
      this.#wake = Promise.withResolvers();
      await this.#report(signal);
      await this.#pause(settings.nodeStatusUpdateFrequencyMs, signal);
    }
  }

  /** Until the status may have changed. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const tick = new AbortController();
    const sleep = this.#deps.clock.sleep(ms, AbortSignal.any([signal, tick.signal]));
    await Promise.race([sleep, this.#wake.promise]).catch(() => {});
    tick.abort();
  }

  async #readNode(): Promise<ApiNode> {
    return toReportedNode((await this.#deps.node.readNode()) as ApiNode);
  }

  /** Until it has succeeded. */
  async #register(signal: AbortSignal): Promise<void> {
    const { clock, logger, settings, nodeName } = this.#deps;
    const backOff = new BackOff(RETRY, Math.random);
    for (let lastMessage = ""; !signal.aborted; ) {
      try {
        await this.#createOrAdopt(signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        const { message } = error as Error;
        const isMissing = !settings.registerNode && isNotFound(error);
        if (message !== lastMessage)
          logger.warn(
            isMissing
              ? `Node "${nodeName}" does not exist and --register-node=false: waiting until it does`
              : `Cannot register node "${nodeName}", will try again: ${message}`,
          );
        lastMessage = message;
        await clock.sleep(backOff.next(), signal).catch(() => {});
      }
    }
  }

  async #createOrAdopt(signal: AbortSignal): Promise<void> {
    const { client, settings, nodeName } = this.#deps;
    const node = await this.#readNode();
    let refusal: unknown;
    if (settings.registerNode) {
      try {
        const body = toNewNode(node, settings);
        const created = await client.request<ApiNode>({ method: "POST", path: "/api/v1/nodes", body, signal });
        this.#uid = created.metadata.uid;
        this.#found = created;
        this.#registeredStatus = node.status;
        this.#isCreated = true;
        return;
      } catch (error) {
        // A quota or an authorizer may forbid to create what exists. Source: the kubelet's tryRegisterWithAPIServer.
        if (!isConflict(error) && !(error instanceof ApiStatusError && error.code === 403)) throw error;
        refusal = error;
      }
    }
    const path = `/api/v1/nodes/${nodeName}`;
    const existing = await client.request<ApiNode>({ path, signal }).catch((error: unknown) => {
      // Why it cannot be created tells more than that it does not exist.
      throw refusal !== undefined && isNotFound(error) ? refusal : error;
    });
    this.#uid = existing.metadata.uid;
    this.#found = existing;
    const patch = settings.registerNode ? computeAdoption(existing, node, settings) : undefined;
    if (patch) await client.request({ method: "PATCH", path, body: patch, contentType: MERGE_PATCH, signal });
    this.#registeredStatus = node.status;
    const reboot = node.status && findReboot(nodeName, existing.status, node.status);
    if (reboot !== undefined) this.#record({ type: "Warning", reason: "Rebooted", message: reboot });
  }

  #recordConditions(before: ApiNode["status"], next: ApiNode["status"]): void {
    for (const reason of conditionEvents(before?.conditions, next?.conditions)) this.#recordStatus(reason);
  }

  #recordStatus(reason: string): void {
    const message = `Node ${this.#deps.nodeName} status is now: ${reason}`;
    this.#record({ type: "Normal", reason, message });
  }

  #record(event: PodEvent): void {
    this.#deps.recorder.record(nodeTarget(this.#deps.nodeName), event);
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { heartbeats, clock, logger, nodeName, settings } = this.#deps;
    try {
      const { status: next = {} } = await this.#readNode();
      // It was removed by hand: a kubelet that registers makes it again. Source: newer kubelets at their next start.
      if (this.#reflector.isListed && !this.node) await this.#createOrAdopt(signal);
      const watched = this.node;
      const node = watched && watched !== this.#outdated && !isOlder(watched, this.#found) ? watched : this.#found;
      const nowMs = clock.monotonicMs();
      const isOld = nowMs - this.#reportedAtMs >= settings.nodeStatusReportFrequencyMs;
      const reported = this.#withOthers(next, node);
      if (!isOld && !isStatusChanged(node?.status, reported)) return;
      const patch = computeNodeStatusPatch(node?.status, reported);
      this.#found = await heartbeats.request<ApiNode>({
        method: "PATCH",
        path: `/api/v1/nodes/${nodeName}/status`,
        body: patch,
        contentType: STRATEGIC_MERGE_PATCH,
        timeoutMs: STATUS_TIMEOUT_MS,
        signal,
      });
      this.#outdated = watched;
      this.#reportedAtMs = nowMs;
      if (node?.status) this.#recordConditions(node.status, next);
      if (this.#isFailing) logger.info("The status of the node is reported again");
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!this.#isFailing) logger.warn(`Cannot report the status of the node: ${(error as Error).message}`);
      this.#isFailing = true;
    }
  }

  /**
   * With what others have set: extended resources and, with an external cloud provider, the addresses of its controller.
   */
  #withOthers(own: NonNullable<ApiNode["status"]>, node: ApiNode | undefined): NonNullable<ApiNode["status"]> {
    const status = withExtendedResources(node?.status, own);
    const known = node?.status?.addresses;
    if (this.#deps.settings.cloudProvider !== "external" || !known?.length) return status;
    return { ...status, addresses: known };
  }
}

/** A list from the API server's cache may bring a Node from before our own write. */
const isOlder = (node: ApiNode, than: ApiNode | undefined): boolean =>
  Number(node.metadata.resourceVersion) < Number(than?.metadata.resourceVersion);

interface Lease {
  metadata: object;
  spec: { holderIdentity: string; leaseDurationSeconds: number; renewTime: string };
}

const PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/** Renewals within one duration of the Lease. Source: the kubelet's nodeLeaseRenewIntervalFraction of 0.25. */
const RENEWALS = 4;

/** Renews the Lease of the node: how the cluster knows that the node is alive. */
class NodeLease {
  readonly #deps: NodeAgentDeps;
  readonly #nodeUid: () => string | undefined;
  readonly #backOff = new BackOff(RETRY, Math.random);
  #latest: Lease | undefined;

  /** @param nodeUid undefined before it is known */
  constructor(deps: NodeAgentDeps, nodeUid: () => string | undefined) {
    this.#deps = deps;
    this.#nodeUid = nodeUid;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, clock, settings, logger } = this.#deps;
    const periodMs = (settings.nodeLeaseDurationSeconds * 1000) / RENEWALS;
    let isFailing = false;
    while (!signal.aborted) {
      let delayMs = periodMs * (1 + Math.random() * 0.04);
      try {
        await this.#renew(signal);
        if (isFailing) {
          logger.info("The Lease of the node is renewed again");
          client.resetWatches();
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
    const { heartbeats: client, nodeName, settings, clock } = this.#deps;
    const { nodeLeaseDurationSeconds: durationSeconds } = settings;
    const path = `${PATH}/${nodeName}`;
    const common = { signal, timeoutMs: Math.max(1000, (durationSeconds * 1000) / RENEWALS) };
    const renewTime = toMicroTime(clock.now());
    const spec = { holderIdentity: nodeName, leaseDurationSeconds: durationSeconds, renewTime };
    // The Lease goes with its Node.
    const uid = this.#nodeUid();
    const owner = uid !== undefined && { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }] };
    this.#latest ??= await client.request<Lease>({ path, ...common }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (!this.#latest) {
      const metadata = { name: nodeName, namespace: "kube-node-lease", ...owner };
      const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
      this.#latest = await client.request<Lease>({ method: "POST", path: PATH, body, ...common });
      return;
    }
    const metadata = { ...this.#latest.metadata, ...owner };
    const body = { ...this.#latest, metadata, spec: { ...this.#latest.spec, ...spec } };
    try {
      this.#latest = await client.request<Lease>({ method: "PUT", path, body, ...common });
    } catch (error) {
      if (!isConflict(error)) throw error;
      this.#latest = undefined;
      await this.#renew(signal);
    }
  }
}

/** `metav1.MicroTime`. */
const toMicroTime = (time: Date) => time.toISOString().replace("Z", "000Z");
