import { FIRST_PORT } from "./pod-network.ts";
import type { SeededRandom } from "./seeded-random.ts";

export interface WantedContainer {
  name: string;
  /** A program of the engine model. */
  program: readonly string[];
  image: string;
  /** Counts the edits that name this container. */
  version: number;
  /** The newest one that was written, where an edit was undone. */
  newest?: number | undefined;
  hasLiveness: boolean;
  /** Services lead to its pod only while its probe succeeds. */
  hasReadiness: boolean;
  /** `imagePullPolicy: Always`. */
  pullsAlways: boolean;
  /** It has commands that run after its start and before its stop. */
  hasHooks: boolean;
}

/** Times at which a CronJob runs. */
export interface WantedSchedule {
  minute: number;
  /** undefined: {@link isRunHour} says at which. */
  hour: number | undefined;
  timeZone: string;
}

/** An hourly run costs a simulated year more than all faults: of the CronJobs that run more than once a day, one of ten does so. */
const hourStep = (minute: number): number => (minute < 6 ? 1 : 6);

export const isRunHour = (minute: number, hour: number): boolean => hour % hourStep(minute) === 0;

/** Runs to an end: a Job, or with a schedule a CronJob. */
export interface WantedJob {
  /** Indexes of a Job; 1 for a CronJob. */
  completions: number;
  parallelism: number;
  schedule: WantedSchedule | undefined;
}

/** The pod that one manifest file asks for, or a Deployment, Job or CronJob of such pods. */
export interface WantedPod {
  app: string;
  /** Where it is written: in a file, in the text of a URL, by a client of the local API, or in the cluster that the machine is a node of. */
  source: "file" | "url" | "api" | "cluster";
  replicas: number | undefined;
  /** The kind of workload; undefined: a Deployment. A DaemonSet has one. */
  kind?: "StatefulSet" | "DaemonSet" | undefined;
  /** Pods of a StatefulSet below this ordinal keep the versions that their containers had. */
  partition?: { ordinal: number; versions: Readonly<Record<string, number>> } | undefined;
  /** Port of the machine that leads to the Service of a Deployment. */
  nodePort?: number | undefined;
  job: WantedJob | undefined;
  restartPolicy: "Always" | "OnFailure" | "Never";
  graceSeconds: number;
  /** Its containers read the value of a Secret that is written next to it. */
  hasSecret: boolean;
  /** Version of the ConfigMap that its containers have as a volume; undefined: none. See {@link hasValues}. */
  config: number | undefined;
  /** When that was edited. */
  configMs?: number | undefined;
  /** Its containers share an emptyDir. */
  hasData: boolean;
  /** The app of a pod that runs before this one starts. */
  dependsOn: string | undefined;
  init: readonly WantedContainer[];
  containers: readonly WantedContainer[];
  /** Counts the edits that concern no container. */
  note: number;
  /** When a person changed it last. */
  changedMs: number;
}

const LASTING = [["run"], ["run"], ["run"], ["slow", "3"], ["deaf"]] as const;

function makeSchedule(random: SeededRandom): WantedSchedule {
  const zones = ["Etc/UTC", "Europe/Berlin", "America/New_York"];
  // Hours in which summer time begins and ends come often.
  const hour = random.chance(0.4) ? undefined : random.pick([1, 2, 2, 3, random.whole(0, 23)]);
  return { minute: random.whole(0, 59), hour, timeZone: random.pick(zones) };
}

function makeJob(random: SeededRandom): WantedJob {
  const schedule = random.chance(0.5) ? makeSchedule(random) : undefined;
  const completions = schedule ? 1 : random.whole(1, 4);
  return { completions, parallelism: random.whole(1, completions), schedule };
}

/** A new pod of some kind. */
export function makePod(app: string, random: SeededRandom, nowMs: number): WantedPod {
  const job = random.chance(0.15) ? makeJob(random) : undefined;
  const endsByItself = job !== undefined || random.chance(0.15);
  const isCrashing = !endsByItself && random.chance(0.1);
  const hasReadiness = !endsByItself && random.chance(0.4);
  const container = (name: string): WantedContainer => ({
    name,
    program: endsByItself
      ? ["exit", String(random.whole(1, job ? 60 : 600)), "0"]
      : isCrashing
        ? ["exit", String(random.whole(3_000, 90_000)), "1"]
        : random.pick(LASTING),
    image: `app${random.whole(1, 4)}:1`,
    version: 1,
    hasLiveness: !endsByItself && !hasReadiness && random.chance(0.3),
    hasReadiness,
    pullsAlways: !endsByItself && !isCrashing && random.chance(0.3),
    hasHooks: !endsByItself && random.chance(0.3),
  });
  const init = Array.from({ length: random.chance(0.3) ? random.whole(1, 2) : 0 }, (_, index) => ({
    ...container(`init${index}`),
    program: ["exit", String(random.whole(0, 5)), "0"],
    hasLiveness: false,
    hasReadiness: false,
    pullsAlways: false,
    hasHooks: false,
  }));
  return {
    app,
    source: "file",
    replicas: !endsByItself && random.chance(0.15) ? random.whole(1, 3) : undefined,
    restartPolicy: endsByItself ? random.pick(["Never", "OnFailure"] as const) : "Always",
    // Not 30, which is assumed where nothing tells it.
    graceSeconds: random.pick([1, 5, 31]),
    hasSecret: random.chance(0.3),
    config: random.chance(0.4) ? 1 : undefined,
    hasData: random.chance(0.4),
    dependsOn: undefined,
    init,
    job,
    containers: Array.from({ length: job ? 1 : random.pick([1, 1, 2, 3]) }, (_, index) => container(`app${index}`)),
    note: 1,
    changedMs: nowMs,
  };
}

/** The text of the file. */
export function toManifest(pod: WantedPod): string {
  const [object, ...others] = toObjects(pod);
  const list = { apiVersion: "v1", kind: "List", items: [object, ...others] };
  return `${JSON.stringify(others.length === 0 ? object : list, null, 2)}\n`;
}

/** The text of a URL. */
export const toList = (pods: readonly WantedPod[]): string =>
  JSON.stringify({ apiVersion: "v1", kind: "List", items: pods.flatMap(toObjects) }, null, 2);

/** The values of Secrets begin with it, and with the other in base64. */
export const SECRET_MARKS: readonly string[] = [
  "s3cret-value-",
  Buffer.from("s3cret-value-").toString("base64").slice(0, 16),
];

const hasConfigValue = ({ app, config }: WantedPod) => config !== undefined && Number(app.slice(-1)) % 3 === 0;

/** Whether containers have values of the Secret or ConfigMap in their environment: an edit of these restarts them. */
export const hasValues = (pod: WantedPod): boolean => pod.hasSecret || hasConfigValue(pod);

/** Value of the Secret of a pod, which is edited with its ConfigMap. */
export const secretText = ({ app, config = 1 }: WantedPod) => `${SECRET_MARKS[0]}${app}-${config}`;

const toSecret = (pod: WantedPod) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: pod.app },
  stringData: { token: secretText(pod) },
});

interface WrittenObject {
  apiVersion: string;
  kind: string;
  metadata: object;
  [field: string]: unknown;
}

const toConfig = ({ app, config }: WantedPod) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: app },
  data: { text: configText(config) },
});

/** Contents of the ConfigMap of a pod. */
export const configText = (version: number | undefined) => `config ${version}`;

/** Where containers have the volumes of their pod. */
export const MOUNTS = { config: "/config", data: "/data", claim: "/claim" } as const;

interface WantedVolume {
  name: Exclude<keyof typeof MOUNTS, "claim">;
  configMap?: object;
  projected?: object;
  emptyDir?: object;
}

/** The ConfigMap as a volume, or as a part of one. */
function configVolumeOf(app: string): WantedVolume {
  if (Number(app.slice(-1)) % 2 === 0) return { name: "config", configMap: { name: app } };
  const labels = { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] };
  return { name: "config", projected: { sources: [{ configMap: { name: app } }, { downwardAPI: labels }] } };
}

const volumesOf = ({ app, config, hasData }: WantedPod): WantedVolume[] => [
  ...(config === undefined ? [] : [configVolumeOf(app)]),
  ...(hasData ? [{ name: "data" as const, emptyDir: {} }] : []),
];

/** The objects: one, and the Secret and ConfigMap of its containers, and the Service of a Deployment. */
export function toObjects(pod: WantedPod): WrittenObject[] {
  const volumes = volumesOf(pod);
  const mounts = [...volumes.map(({ name }) => name), ...(pod.kind === "StatefulSet" ? [CLAIM] : [])];
  const container = (wanted: WantedContainer, index: number) => {
    const { name, program, image, version, hasLiveness, hasReadiness, pullsAlways, hasHooks } = wanted;
    const { handler, port } = probeOf(pod.app, index);
    const probe = { ...handler, periodSeconds: PROBE_PERIOD_SECONDS };
    return {
      name,
      image,
      command: program,
      env: [
        { name: "APP", value: pod.app },
        { name: "VERSION", value: String(version) },
        { name: "PORT", value: String(port) },
        ...(pod.kind === "StatefulSet" ? [{ name: "TEMPLATE", value: String(countEdits(pod)) }] : []),
        ...(hasHooks ? [{ name: "HOOKS", value: "1" }] : []),
        ...(pullsAlways ? [{ name: "PULL", value: image }] : []),
        ...(pod.config === undefined || !hasConfigValue(pod)
          ? []
          : [{ name: "CONFIG", valueFrom: { configMapKeyRef: { name: pod.app, key: "text" } } }]),
        ...(pod.hasSecret ? [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: pod.app, key: "token" } } }] : []),
      ],
      ...(mounts.length > 0 && { volumeMounts: mounts.map((of) => ({ name: of, mountPath: MOUNTS[of] })) }),
      ...(pullsAlways && { imagePullPolicy: "Always" }),
      ...(hasHooks && { lifecycle: { postStart: toHook(HOOKS.postStart), preStop: toHook(HOOKS.preStop) } }),
      ...(hasLiveness && { livenessProbe: { ...probe, failureThreshold: 2 } }),
      ...(hasReadiness && { readinessProbe: { ...probe, failureThreshold: 1 } }),
    };
  };
  const spec = {
    restartPolicy: pod.replicas === undefined ? pod.restartPolicy : "Always",
    terminationGracePeriodSeconds: pod.graceSeconds,
    ...(pod.init.length > 0 && { initContainers: pod.init.map(container) }),
    containers: pod.containers.map(container),
    ...(volumes.length > 0 && { volumes }),
  };
  const labels = { app: pod.app };
  const order = pod.dependsOn === undefined ? {} : { "kubelet-ts.io/depends-on": `default/${pod.dependsOn}=Running` };
  const isPod = pod.replicas === undefined && !pod.job;
  const metadata = { name: pod.app, labels, annotations: { note: String(pod.note), ...(isPod && order) } };
  const template = { metadata: { labels, annotations: order }, spec };
  return [
    Object.assign(toObject(pod, template), { metadata }),
    ...(pod.config === undefined ? [] : [toConfig(pod)]),
    ...(pod.hasSecret ? [toSecret(pod)] : []),
    ...(pod.replicas === undefined ? [] : [toService(pod)]),
  ];
}

/** Name of the volume that each pod of a StatefulSet has for itself. */
export const CLAIM = "claim" as const;

/** Commands of a container. */
export const HOOKS = { postStart: "post-start", preStop: "pre-stop" } as const;

const toHook = (command: string) => ({ exec: { command: [command] } });

/** Unit: seconds. */
export const PROBE_PERIOD_SECONDS = 600;

/**
 * How a container is asked whether it lives. Of the 23 liveness probes of the manifests in Kubernetes' own source tree 21 use
 * httpGet, one tcpSocket and one exec; here the last two are more, since each has its own faults.
 */
function probeOf(app: string, index: number) {
  const kind = [...app].reduce((sum, letter) => sum + letter.charCodeAt(0), index) % 5;
  if (kind === 0) return { handler: { exec: { command: ["check"] } }, port: 0 };
  const word = kind === 1 ? "tcpSocket" : "httpGet";
  const port = FIRST_PORT[word] + index;
  return { handler: { [word]: { port } }, port };
}

/** Each workload with replicas has a Service. */
const toService = ({ app, nodePort }: WantedPod) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: app },
  spec: { selector: { app }, ports: [{ port: 80, nodePort }], ...(nodePort !== undefined && { type: "NodePort" }) },
});

function toObject(pod: WantedPod, template: { metadata: object; spec: object }) {
  const { replicas, job, app } = pod;
  if (replicas !== undefined) {
    const spec = { selector: { matchLabels: { app } }, template, ...specOfKind(pod, replicas) };
    return { apiVersion: "apps/v1", kind: pod.kind ?? "Deployment", spec };
  }
  if (!job) return { apiVersion: "v1", kind: "Pod", spec: template.spec };
  const { completions, parallelism, schedule } = job;
  // People, faults and power cuts end pods of a Job more often than six times.
  const spec = { backoffLimit: 10_000, completions, parallelism, completionMode: "Indexed", template };
  if (!schedule) return { apiVersion: "batch/v1", kind: "Job", spec };
  const { minute, hour, timeZone } = schedule;
  const times = `${minute} ${hour ?? `*/${hourStep(minute)}`} * * *`;
  return { apiVersion: "batch/v1", kind: "CronJob", spec: { schedule: times, timeZone, jobTemplate: { spec } } };
}

/** Grows with each edit of the template. */
const countEdits = ({ containers }: WantedPod): number => containers.reduce((sum, { version }) => sum + version, 0);

function specOfKind({ kind, app, partition }: WantedPod, replicas: number): object {
  if (kind === "DaemonSet") return {};
  if (kind === undefined) return { replicas };
  const resources = { requests: { storage: "1Gi" } };
  return {
    replicas,
    serviceName: app,
    volumeClaimTemplates: [{ metadata: { name: CLAIM }, spec: { accessModes: ["ReadWriteOnce"], resources } }],
    ...(partition && { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: partition.ordinal } } }),
  };
}

/** Pods of which something may be left at rest. A CronJob keeps four Jobs that have ended. */
export const podsOf = ({ replicas, job }: WantedPod): number =>
  job ? (job.schedule ? 5 : job.completions) + FAILED_PODS : (replicas ?? 1);

/** Pods of a Job that others have ended, and that it keeps. */
const FAILED_PODS = 10;

/** Whether a container of the pod runs on without end. */
export const isLasting = ({ program }: WantedContainer) => program[0] !== "exit";
