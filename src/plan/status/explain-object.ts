import type { CoreEvent } from "../../base/api/event.ts";
import { hasCondition, notLive, type ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import type { PodTemplateSpec } from "../../base/api/workload.ts";
import { containersOf, hostPortsOf } from "../../base/model/pod.ts";
import { neverComes } from "../../base/text/cron-schedule.ts";
import type { IngressProblem } from "../ingress-config.ts";
import { FIX_OF_DISK } from "../pod-end-reasons.ts";
import { type ServiceBackend, targetPortOf } from "../service-endpoints.ts";
import { type Cause, withRefused } from "./explain-container.ts";
import { renderCause, renderNotInForce } from "./explain-pod.ts";

/** An object of the API that is no pod, as far as its explanation reads it. */
interface ExplainedObject {
  metadata: Pick<ObjectMeta, "name" | "namespace" | "creationTimestamp">;
  spec?: unknown;
  status?: unknown;
}

/** Objects that the state of an object depends on, in addition to its pods. */
export interface ObjectContext {
  /** The Jobs of a CronJob. */
  jobs?: readonly ExplainedObject[];
  /** Pods and addresses to which clients of a Service are sent. */
  backends?: readonly ServiceBackend[];
  /** Parts of an Ingress that do not work. */
  problems?: readonly IngressProblem[];
}

interface ExplainObjectInput extends ObjectContext {
  /** As kubectl shows it: `deployment.apps`. */
  kind: string;
  object: ExplainedObject;
  /** Pods that it selects or owns. */
  pods: readonly Pod[];
  /** Events of the object, oldest first. */
  events: readonly CoreEvent[];
  refused?: readonly string[];
}

/** Why a workload, Job, claim, Service or Ingress does not do its work; the same for the terminal and JSON. */
export interface ObjectExplanation {
  kind: string;
  namespace: string | undefined;
  name: string;
  isReady: boolean;
  /** `1 of 2 pods are Ready`. */
  state: string;
  causes: Cause[];
  /** Why it does not follow the manifest of a configured source, as of a pod. */
  notInForce?: string | undefined;
}

interface Spec {
  replicas?: number;
  template?: PodTemplateSpec;
  suspend?: boolean;
  schedule?: string;
  timeZone?: string;
  completions?: number;
  parallelism?: number;
  paused?: boolean;
  type?: string;
  selector?: object;
  ports?: Service["spec"]["ports"];
  unschedulable?: boolean;
  volumeName?: string;
}

interface Status {
  phase?: string;
  replicas?: number;
  readyReplicas?: number;
  desiredNumberScheduled?: number;
  numberReady?: number;
  lastScheduleTime?: string;
  succeeded?: number;
  failed?: number;
  active?: number;
  loadBalancer?: { ingress?: readonly { ip?: string }[] };
  conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
}

type Judgment = Pick<ObjectExplanation, "isReady" | "state"> & { causes?: Cause[] };

const MAX_WARNINGS = 3;
const FIX_OF_PODS = "correct what its pods say: kubelet-ts explain";
const FIX_OF_SCALE = "set spec.replicas to 1 or more in its manifest, or with kubectl scale";
const FIX_OF_PAUSE = "set spec.paused to false in its manifest, or with kubectl rollout resume";
const FIX_OF_LABELS =
  "give the node these labels with --node-labels, or change spec.template.spec.nodeSelector; kubelet-ts describe node shows its labels";
const SUSPENDED = ["it is suspended", "set spec.suspend to false"] as const;

/** Fixes by the condition of a node that is as it should not be. */
const NODE_FIXES: Readonly<Record<string, string>> = {
  Ready: "kubelet-ts doctor names what the engine or the network lacks",
  MemoryPressure: "give pods memory limits, or the node fewer pods; kubelet-ts top pods shows who uses it",
  DiskPressure: FIX_OF_DISK,
  PIDPressure: "kubelet-ts top pods; --pod-max-pids bounds the processes of a pod",
};

const cause = (problem: string, fix: string, facts: string[] = []): Cause => ({
  subject: "object",
  problem,
  facts,
  fix,
});

/** A manifest that was refused may have what is not there. */
const causeOfLack = (...of: Parameters<typeof cause>): Cause => ({ ...cause(...of), lacksObject: true });

const causeIf = (is: boolean, ...of: Parameters<typeof cause>): Cause[] => (is ? [cause(...of)] : []);

/** Pods of one template cannot have one port of the machine. */
function explainHostPort({ spec }: PodTemplateSpec): Cause[] {
  const [port] = spec.hostNetwork ? [] : hostPortsOf(spec);
  const fix =
    "set spec.replicas to 1, or replace hostPort in the template by a Service of type LoadBalancer with that port";
  return causeIf(port !== undefined, `all its pods ask for port ${port} of the machine: one of them gets it`, fix);
}

const judgeReplicas = (ready = 0, wanted = 1, isPaused = false): Judgment => ({
  isReady: ready >= wanted && wanted > 0,
  state: `${ready} of ${wanted} pods are Ready`,
  causes: [
    ...causeIf(wanted === 0, "no pods are wanted", FIX_OF_SCALE),
    ...causeIf(isPaused, "its rollout is paused", FIX_OF_PAUSE),
  ],
});

function byReplicas({ replicas = 1, paused, template }: Spec, { readyReplicas = 0 }: Status): Judgment {
  const judgment = judgeReplicas(readyReplicas, replicas, paused);
  const ofPorts = template && replicas > 1 && readyReplicas < replicas ? explainHostPort(template) : [];
  return { ...judgment, causes: [...(judgment.causes ?? []), ...ofPorts] };
}

type Judge = (
  spec: Spec,
  status: Status,
  pods: readonly Pod[],
  context: ObjectContext & Pick<ExplainObjectInput, "events" | "object">,
) => Judgment;

/** How the kinds that have a state say whether they do their work. */
const JUDGMENTS: Readonly<Record<string, Judge>> = {
  Deployment: byReplicas,
  ReplicaSet: byReplicas,
  ReplicationController: byReplicas,
  StatefulSet: byReplicas,
  DaemonSet: (_, { numberReady, desiredNumberScheduled = 0 }) =>
    desiredNumberScheduled > 0
      ? judgeReplicas(numberReady, desiredNumberScheduled)
      : {
          isReady: false,
          state: "no pod of it belongs on this node",
          causes: [cause("its nodeSelector or affinity does not match this node", FIX_OF_LABELS)],
        },
  Job: ({ suspend, completions = 1, parallelism }, { conditions, succeeded = 0, active = 0, failed = 0 }, pods) => {
    const [isComplete, hasFailed] = ["Complete", "Failed"].map((end) => hasCondition({ conditions }, end));
    const state = isComplete
      ? "Complete"
      : `${succeeded} of ${completions} completions, ${active} ${active === 1 ? "pod is" : "pods are"} active`;
    if (isComplete || hasFailed) return { isReady: !hasFailed, state };
    const waiting = pods.filter((pod) => pod.status?.phase === "Pending");
    const tried = "their logs say why; others are tried until spec.backoffLimit is reached";
    const causes = [
      ...causeIf(suspend === true, ...SUSPENDED),
      ...causeIf(parallelism === 0, "no pods are wanted", "set spec.parallelism to 1 or more"),
      ...causeIf(active > 0 && waiting.length === active, "its pods have not begun", FIX_OF_PODS),
      ...causeIf(failed > 0, `${failed} ${failed === 1 ? "pod has" : "pods have"} failed`, tried),
    ];
    return { isReady: causes.length === 0, state, causes };
  },
  CronJob: ({ suspend, schedule, timeZone }, { lastScheduleTime }, pods, { jobs = [], events }) => {
    const failed = failedRun(jobs);
    const causes = causeIf(suspend === true, ...SUSPENDED);
    if (lastScheduleTime === undefined && schedule !== undefined && neverComes(schedule, timeZone))
      causes.push(cause(`no day is in its schedule "${schedule}"`, "correct the day and the month of spec.schedule"));
    const running = runningJob(jobs);
    if (running && events.at(-1)?.reason === "JobAlreadyActive") {
      const fix = `kubelet-ts explain job/${running.metadata.name} says what it does; activeDeadlineSeconds of spec.jobTemplate.spec bounds it`;
      causes.push(cause("its last run has not ended, and concurrencyPolicy Forbid skips the ones after it", fix));
    }
    const isBegun = failed || !pods.every(({ status }) => status?.phase === "Pending");
    if (running && pods.length > 0 && !isBegun)
      causes.push(cause(`the pods of its Job "${running.metadata.name}" have not begun`, FIX_OF_PODS));
    if (failed) {
      const { name } = failed.job.metadata;
      const { reason = "", message = "" } = failed.failure;
      const fix = `correct spec.jobTemplate (kubelet-ts logs job/${name}); the next run is a new Job`;
      causes.push(cause(`its last Job "${name}" failed: ${reason}`, fix, message === "" ? [] : [message]));
    }
    const end = failed ? " failed" : "";
    return {
      isReady: causes.length === 0,
      state: lastScheduleTime === undefined ? "it has not run yet" : `last run ${lastScheduleTime}${end}`,
      causes,
    };
  },
  Service: ({ type, selector, ports = [] }, _, pods, { backends = [], object: { metadata } }) => {
    if (type === "ExternalName") return { isReady: true, state: "it is a name for another host" };
    const isApi = metadata.namespace === "default" && metadata.name === "kubernetes";
    if (Object.keys(selector ?? {}).length === 0) return explainWritten(isApi, ports, backends);
    const ready = pods.filter((pod) => hasCondition(pod.status, "Ready")).length;
    const compare = "compare spec.selector with the labels of the pods: kubelet-ts describe pods";
    const causes = pods.length > 0 ? missingPorts(ports, pods) : [causeOfLack("its selector matches no pod", compare)];
    const isWell = causes.length === 0;
    causes.push(...undeclaredPorts(ports, pods));
    causes.push(...causeIf(pods.length > 0 && ready === 0, "none of its pods is Ready: it leads nowhere", FIX_OF_PODS));
    return {
      isReady: ready > 0 && isWell,
      state: `${ready} of its ${pods.length} pods are Ready`,
      causes,
    };
  },
  Ingress: (_, { loadBalancer }, _pods, { problems = [] }) => {
    if (loadBalancer === undefined) {
      const fix =
        'remove spec.ingressClassName, or write "nginx" or an IngressClass of controller k8s.io/ingress-nginx';
      return {
        isReady: false,
        state: "nothing serves it",
        causes: [cause("its class has no server on this node", fix)],
      };
    }
    const [address] = loadBalancer.ingress ?? [];
    return {
      isReady: address !== undefined && problems.length === 0,
      state: address
        ? `served at ${address.ip}${problems.length > 0 ? ", but not all of it" : ""}`
        : "it is not served",
      causes: problems.map(({ reason, message, service = "" }) => {
        const [namespace, name] = service.split("/");
        const fix = INGRESS_FIXES[reason].replace("SERVICE", `service/${name} -n ${namespace}`);
        const isLack = /^(?:BackendNotFound|CertificateNotUsable|AuthSecretNotUsable)$/.test(reason);
        return (isLack ? causeOfLack : cause)(message, fix);
      }),
    };
  },
  Node: ({ unschedulable }, { conditions = [] }) => {
    const bad = conditions.filter(({ type, status }) => (type === "Ready") !== (status === "True"));
    const causes = bad.map(({ type, status, message = "" }) =>
      cause(`${type} is ${status}: ${message}`, NODE_FIXES[type] ?? ""),
    );
    if (unschedulable) causes.push(cause("it is cordoned: new pods stay Pending", "kubectl uncordon"));
    const isWell = conditions.length > 0 && bad.length === 0;
    const state = isWell ? "its conditions are as they should be" : "pods may not run";
    return { isReady: isWell && !unschedulable, state, causes };
  },
  PersistentVolumeClaim: ({ volumeName = "" }, { phase = "Pending" }) => {
    const isLost = phase === "Pending" && volumeName !== "";
    const problem = `it names the volume "${volumeName}", which is not there, or which another claim has`;
    const fix = `add a PersistentVolume "${volumeName}", or delete the claim and apply it without volumeName`;
    return { isReady: phase === "Bound", state: phase, causes: isLost ? [causeOfLack(problem, fix)] : [] };
  },
  PersistentVolume: (_, { phase = "Pending" }) => ({
    isReady: phase === "Bound" || phase === "Available",
    state: phase,
  }),
};

/** Fixes by the reason for which a part of an Ingress does not work. */
const INGRESS_FIXES: Readonly<Record<IngressProblem["reason"], string>> = {
  InvalidIngress: "correct it in its manifest",
  RouteConflict: "remove the path from one of the two, or give one another host",
  BackendNotFound: "correct the name and the port of the backend, or add the Service: kubelet-ts get services",
  NoReadyPods: "kubelet-ts explain SERVICE says why: its selector, or its pods",
  CertificateNotUsable:
    "add a Secret of type kubernetes.io/tls with tls.crt and tls.key in the namespace of the Ingress, or correct spec.tls",
  AuthSecretNotUsable: "add a Secret with the key auth (lines of htpasswd) in the namespace of the Ingress",
};

/** A Job of a CronJob that has not ended. */
export const runningJob = (jobs: readonly ExplainedObject[]): ExplainedObject | undefined =>
  jobs.find(({ status }) => !["Complete", "Failed"].some((end) => hasCondition(status as Status, end)));

/** The last Job of a CronJob, and how it failed; undefined when it did not. */
export function failedRun(jobs: readonly ExplainedObject[]) {
  const timeOf = ({ metadata }: ExplainedObject) => Date.parse(metadata.creationTimestamp ?? "") || 0;
  const last = jobs.toSorted((a, b) => timeOf(b) - timeOf(a))[0];
  const { conditions = [] } = (last?.status ?? {}) as Status;
  const failure = conditions.find(({ type, status }) => type === "Failed" && status === "True");
  return last && failure && { job: last, failure };
}

/** A Service without a selector leads to written addresses. */
function explainWritten(isApi: boolean, ports: Spec["ports"] = [], backends: readonly ServiceBackend[]): Judgment {
  const state = `it has no selector: ${backends.length} written addresses are behind it`;
  if (backends.length === 0) {
    const fix = isApi
      ? "start the kubelet with --local-api-address=ADDRESS, one of this machine that pods reach"
      : "write Endpoints of its name with addresses, or an EndpointSlice with the label kubernetes.io/service-name";
    const lack = causeOfLack("it has no selector and no ready address: it leads nowhere", fix);
    return { isReady: false, state, causes: [lack] };
  }
  const causes = ports
    .filter((port) => backends.every((backend) => targetPortOf(port, backend) === undefined))
    .map(({ name = "", port, protocol }) => {
      const called = name === "" ? "without a name" : `called "${name}"`;
      const fix = "give the ports of the Endpoints and those of the Service the same names and protocols";
      return cause(`its Endpoints have no ${protocol} port ${called}, as its port ${port} is`, fix);
    });
  return { isReady: causes.length === 0, state, causes };
}

const portsOf = (pods: readonly Pod[]) =>
  pods.flatMap(({ spec }) => containersOf(spec).flatMap(({ ports = [] }) => ports));

/** Names of ports that no container of the pods has: nothing is reached there. */
function missingPorts(ports: Spec["ports"] = [], pods: readonly Pod[]): Cause[] {
  const names = new Set(portsOf(pods).map(({ name }) => name));
  return ports.flatMap(({ targetPort }) =>
    causeIf(
      typeof targetPort === "string" && !names.has(targetPort),
      `no container of its pods has a port called "${targetPort}"`,
      `set targetPort to the number of the port, or give the container's port the name ${targetPort}`,
    ),
  );
}

/** Numbers of ports that no container of the pods declares, although they declare others: probably nothing is reached there. */
function undeclaredPorts(ports: Spec["ports"] = [], pods: readonly Pod[]): Cause[] {
  const declared = new Set(portsOf(pods).map(({ containerPort }) => containerPort));
  if (declared.size === 0) return [];
  return ports.flatMap(({ port, targetPort = port }) =>
    causeIf(
      typeof targetPort === "number" && !declared.has(targetPort),
      `no container of its pods declares port ${targetPort}, to which it leads`,
      `if nothing listens there, set targetPort to ${[...declared].join(" or ")}`,
    ),
  );
}

/** Fixes by the reason of a condition. */
const CONDITION_FIXES: Readonly<Record<string, string>> = {
  BackoffLimitExceeded: "its pods failed too often: correct what its pods say, then delete the Job and apply it again",
  DeadlineExceeded:
    "if its program failed again and again, correct that; else raise spec.activeDeadlineSeconds, or give the Job less work; then delete it and apply it again",
  FailedIndexes: "the logs of its failed pods say why: correct that, then delete the Job and apply it again",
  PodFailurePolicy: "a rule of spec.podFailurePolicy ended it: correct the pod, then delete the Job and apply it again",
  PortNotAllocated:
    "set another nodePort or port in one of the two, or stop what holds it; without nodePort a free one is chosen",
  ClusterIPNotAllocated: "remove spec.clusterIP, or set a free address of --service-cluster-ip-range",
  ProgressDeadlineExceeded:
    "its newest pods do not become Ready: correct what its pods say, or raise spec.progressDeadlineSeconds",
};

/** Conditions that say why. */
const BAD_CONDITIONS = new Set([
  "ReplicaFailure True",
  "Failed True",
  "FailureTarget True",
  "Progressing False",
  "PortNotAllocated True",
  "ClusterIPNotAllocated True",
]);

/**
 * Explains an object's status and events. Pure.
 * @param kind of the object, as in `Deployment`
 * @returns undefined for a kind that has no state
 */
export function explainObject(
  kind: string,
  { kind: shown, object, pods, events, refused, ...context }: ExplainObjectInput,
): ObjectExplanation | undefined {
  const judge = Object.hasOwn(JUDGMENTS, kind) ? JUDGMENTS[kind] : undefined;
  if (!judge) return undefined;
  const { metadata, spec, status } = object as { metadata: ExplainedObject["metadata"]; spec?: Spec; status?: Status };
  const more = { ...context, events, object };
  const { isReady: isJudgedReady, state, causes = [] } = judge(spec ?? {}, status ?? {}, pods, more);
  const conditions = (status?.conditions ?? []).flatMap(({ type, status: is, reason = "", message = "" }) =>
    causeIf(
      BAD_CONDITIONS.has(`${type} ${is}`),
      `${type} is ${is}: ${reason}`,
      CONDITION_FIXES[reason] ?? "",
      message === "" ? [] : [message],
    ),
  );
  const isReady = isJudgedReady && conditions.length === 0;
  // Events of the parts of an Ingress may be older than a fix; what nginx refuses is told by its event alone.
  const isTold = ({ reason = "", message }: CoreEvent) =>
    conditions.some(({ problem }) => problem.endsWith(`: ${reason}`)) ||
    causes.some(({ problem }) => problem === message) ||
    (reason !== "InvalidIngress" && Object.hasOwn(INGRESS_FIXES, reason));
  const warnings = isReady
    ? []
    : events.filter((event) => event.type === "Warning" && !isTold(event)).slice(-MAX_WARNINGS);
  return {
    kind: shown,
    namespace: metadata.namespace,
    name: metadata.name ?? "",
    isReady,
    state,
    causes: [
      ...withRefused(causes, refused),
      ...conditions,
      ...warnings.map(({ reason = "", message = "" }) => cause(reason, "", [message])),
    ],
    notInForce: notLive(status)?.message,
  };
}

/** Text for the terminal. */
export function renderObjectExplanation(explanation: ObjectExplanation): string {
  const { kind, name, isReady, state, causes, notInForce } = explanation;
  const head = `${kind} "${name}" is ${isReady ? "" : "not "}ready: ${state}`;
  return [head, ...causes.map((cause) => renderCause(cause)), ...renderNotInForce(notInForce)].join("\n\n");
}
