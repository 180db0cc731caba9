import type * as v from "valibot";
import { type Condition, hasCondition } from "../../base/api/meta.ts";
import { BackOff } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { UNSCHEDULABLE_TAINT } from "../../base/model/node.ts";
import type { NodeTaint } from "../../base/model/option-values.ts";
import { type EventRecorder, nodeTarget, type PodEvent } from "../../base/model/pod-event.ts";
import { MACHINE_LABELS } from "../../plan/node-affinity.ts";
import { ApiStatusError, isConflict, isNotFound } from "../client/api-error.ts";
import { type ClusterClient, MERGE_PATCH, STRATEGIC_MERGE_PATCH } from "../client/cluster-client.ts";
import { type ObjectOfApi, ObjectSchema, Reflector } from "../client/reflector.ts";

interface NodeStatus {
  conditions?: Condition[];
  addresses?: { type: string; address: string }[];
  nodeInfo?: { bootID?: string };
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
  [field: string]: unknown;
}

/** `v1.Node`. */
export interface ApiNode extends ObjectOfApi {
  spec: { taints?: { key: string; value?: string; effect: string }[]; providerID?: string; unschedulable?: boolean };
  status?: NodeStatus;
}

export interface RegistrationSettings {
  cloudProvider: "" | "external";
  providerId: string;
  /** "" where --node-ip was not set. */
  nodeIp: string;
  registerSchedulable: boolean;
  enableControllerAttachDetach: boolean;
  nodeTaints: readonly NodeTaint[];
}

const CLOUD_TAINT = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
const ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach";
const PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip";

/** The node as API servers take it: a configuration that is no ConfigMap makes the whole status invalid. Pure. */
function toReportedNode({ status, ...node }: ApiNode): ApiNode {
  const { config: _config, ...reported } = status ?? {};
  return { ...node, status: reported };
}

/** The Node object to create. Pure. Source: the kubelet's initialNode. @param node as `/node` shows it */
export function toNewNode(node: ApiNode, settings: RegistrationSettings): ApiNode {
  const { cloudProvider, providerId, registerSchedulable } = settings;
  const taints = [
    ...settings.nodeTaints.map(({ key, value, effect }) => ({ key, ...(value !== "" && { value }), effect })),
    ...(registerSchedulable ? [] : [UNSCHEDULABLE_TAINT]),
    ...(cloudProvider === "external" ? [CLOUD_TAINT] : []),
  ];
  const annotations = annotationsOf(settings);
  return {
    ...node,
    metadata: {
      name: node.metadata.name,
      labels: node.metadata.labels ?? {},
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      ...(taints.length > 0 && { taints }),
      ...(providerId !== "" && { providerID: providerId }),
      ...(registerSchedulable ? {} : { unschedulable: true }),
    },
  };
}

function annotationsOf(settings: RegistrationSettings): Record<string, string> {
  const { cloudProvider, nodeIp, enableControllerAttachDetach } = settings;
  return {
    ...(enableControllerAttachDetach && { [ATTACH_DETACH]: "true" }),
    ...(cloudProvider === "external" && nodeIp !== "" && { [PROVIDED_IP]: nodeIp }),
  };
}

/**
 * Merge patch for an existing Node: the labels of the machine and the annotations of this kubelet. Labels and taints of
 * the options count only for a new Node, so that an administrator may change them. Source: the kubelet's
 * updateDefaultLabels.
 * @returns undefined when nothing differs
 */
export function computeAdoption(existing: ApiNode, node: ApiNode, settings: RegistrationSettings): object | undefined {
  const labels = Object.entries(node.metadata.labels ?? {}).filter(
    ([name, value]) => MACHINE_LABELS.has(name) && existing.metadata.labels?.[name] !== value,
  );
  const wanted = annotationsOf(settings);
  const annotations: [string, string | null][] = [ATTACH_DETACH, PROVIDED_IP].flatMap((name) => {
    const value = wanted[name] ?? null;
    return (existing.metadata.annotations?.[name] ?? null) === value ? [] : [[name, value] as [string, string | null]];
  });
  const metadata = {
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
  };
  return Object.keys(metadata).length === 0 ? undefined : { metadata };
}

/**
 * The status with the extended resources that others have set in the node's capacity; all of them are allocatable. Pure.
 * Source: the kubelet's setter MachineInfo.
 */
export function withExtendedResources(before: NodeStatus | undefined, next: NodeStatus): NodeStatus {
  const { capacity = {}, allocatable = {} } = next;
  const extended = Object.entries(before?.capacity ?? {}).filter(
    ([name]) => name.includes("/") && !Object.hasOwn(capacity, name),
  );
  if (extended.length === 0) return next;
  const others = Object.fromEntries(extended);
  return { ...next, capacity: { ...others, ...capacity }, allocatable: { ...others, ...allocatable } };
}

/** Whether a status has changed, apart from heartbeat times. */
export function isStatusChanged(before: NodeStatus | undefined, next: NodeStatus): boolean {
  if (!before) return true;
  return Object.entries(next).some(([name, value]) =>
    name === "conditions"
      ? (value as Condition[]).some((condition) => isConditionChanged(before.conditions, condition))
      : !Bun.deepEquals(before[name], value) && isKnown(before, name),
  );
}

/** Fields that the API server does not know are dropped by it: they are sent, and never count as a change. */
const isKnown = (before: NodeStatus, name: string) => name in before || !NEWER_FIELDS.has(name);
const NEWER_FIELDS: ReadonlySet<string> = new Set(["features", "runtimeHandlers"]);

function isConditionChanged(known: readonly Condition[] | undefined, next: Condition): boolean {
  const before = known?.find(({ type }) => type === next.type);
  return before?.status !== next.status || before.reason !== next.reason || before.message !== next.message;
}

/**
 * Strategic merge patch of the status: conditions with the times of their transitions as the API server knows them, and
 * other fields only where they differ. Conditions of others stay.
 */
export function computeNodeStatusPatch(before: NodeStatus | undefined, next: NodeStatus): { status: object } {
  const status: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(next)) {
    if (name === "conditions" || Bun.deepEquals(before?.[name], value)) continue;
    // The merge key of addresses is their type, of which there may be two. Source: the kubelet's PatchNodeStatus.
    const isReplaced = name === "addresses" && (before?.addresses?.length ?? 0) > 0;
    status[name] = isReplaced ? [...(value as object[]), { $patch: "replace" }] : value;
  }
  const conditions = (next.conditions ?? []).map((condition) => {
    const known = before?.conditions?.find(({ type }) => type === condition.type);
    return known?.status === condition.status && known.lastTransitionTime
      ? { ...condition, lastTransitionTime: known.lastTransitionTime }
      : condition;
  });
  return { status: { ...status, conditions } };
}

/**
 * Events that a change of conditions calls for. A condition that is new is an event, except Ready, which appears with its
 * first transition. Source: the kubelet's setters of node conditions.
 * @param before undefined: a kubelet that has just registered
 * @returns reasons
 */
export function conditionEvents(before: readonly Condition[] | undefined, next: readonly Condition[] = []): string[] {
  return next.flatMap(({ type, status }) => {
    const known = before?.find((one) => one.type === type)?.status;
    if (known === status || (known === undefined && type === "Ready")) return [];
    return EVENTS[type]?.[status] ?? [];
  });
}

/** Message of the event `Rebooted`; undefined when the machine did not. Source: the kubelet's MachineInfo setter. */
export function findReboot(nodeName: string, before: NodeStatus | undefined, next: NodeStatus): string | undefined {
  const [known, bootId] = [before?.nodeInfo?.bootID, next.nodeInfo?.bootID];
  if (!known || !bootId || known === bootId) return undefined;
  return `Node ${nodeName} has been rebooted, boot id: ${bootId}`;
}

const EVENTS: Readonly<Record<string, Record<string, string>>> = {
  Ready: { True: "NodeReady", False: "NodeNotReady" },
  MemoryPressure: { True: "NodeHasInsufficientMemory", False: "NodeHasSufficientMemory" },
  DiskPressure: { True: "NodeHasDiskPressure", False: "NodeHasNoDiskPressure" },
  PIDPressure: { True: "NodeHasInsufficientPID", False: "NodeHasSufficientPID" },
};

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
