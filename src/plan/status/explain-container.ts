import { ROLLBACK_ANNOTATION } from "../../base/api/annotations.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Container, ContainerStateTerminated, ContainerStatus, Pod, Probe } from "../../base/api/pod.ts";
import { isSidecar } from "../restart-policy.ts";
import {
  type Explained,
  explainStartFailure,
  FIX_OF_FORMAT,
  findWaitingReason,
  type WaitingContainer,
} from "../waiting-reasons.ts";

/** One reason why a pod is not ready. */
export interface Cause extends Explained {
  /** `container app` or `pod`. */
  subject: string;
  facts: string[];
}

const MAX_REFUSED = 5;

/** Names the refused manifests where an object is not there: one of them may have it. Pure. */
export const withRefused = (causes: readonly Cause[], refused: readonly string[] = []): Cause[] =>
  causes.map((cause) => {
    const lines = cause.lacksObject ? refused.slice(0, MAX_REFUSED).map((error) => `refused: ${error}`) : [];
    return { ...cause, facts: [...cause.facts, ...lines] };
  });

interface ExplainContainerInput extends WaitingContainer {
  pod: Pod;
  spec: Container;
  status: ContainerStatus;
  /** The end of its log. */
  log: readonly string[];
  isInit: boolean;
  now: Date;
}

const LOG_LINES = 5;
/** Characters shown of a line. */
const LOG_LINE_CHARS = 500;

/** Why a container that is not ready is not. */
export function explainContainer(input: ExplainContainerInput): Cause {
  const { spec, isInit, log } = input;
  const subject = `${isInit ? "init container" : "container"} ${spec.name}`;
  const { facts = [], ...explained } =
    explainReason(input) ?? explainEnd(input) ?? explainProbe(input) ?? explainProgress(input);
  const tail = log.slice(-LOG_LINES);
  return {
    subject,
    ...explained,
    facts: [
      ...facts,
      ...(explained.fix ? describeEdit(input) : []),
      ...(tail.length > 0 ? ["end of its log:", ...tail.map((line) => `  ${shorten(line)}`)] : []),
    ],
  };
}

/** The time of the edit that ended the readiness of a pod. @param events of the pod, or those that concern one container */
export function findEditThatFailed(pod: Pod, events: readonly CoreEvent[]): string | undefined {
  const restart = findRestartThatFailed(pod, events);
  const replaced = [IMAGE_UPDATE, NEW_VALUES].find((reasons) => findReplacement(events, restart, reasons));
  return replaced ? undefined : restart?.lastTimestamp;
}

/** The message of what ended a container to start it again while the manifest is the same: an image update, or other values. */
function findReplacement(events: readonly CoreEvent[], end: CoreEvent | undefined, reasons: RegExp) {
  return events.findLast(({ reason, lastTimestamp }) => {
    const takenMs = Date.parse(end?.lastTimestamp ?? "") - Date.parse(lastTimestamp);
    return reasons.test(reason) && takenMs >= -CLOCK_SLACK_MS && takenMs <= REPLACED_WITHIN_MS;
  })?.message;
}

function findRestartThatFailed({ spec, status }: Pod, events: readonly CoreEvent[]): CoreEvent | undefined {
  const ready = status?.conditions?.find(({ type, status: is }) => type === "Ready" && is === "False");
  const endMs = Date.parse(ready?.lastTransitionTime ?? "");
  const graceMs = (spec.terminationGracePeriodSeconds ?? 30) * 1000;
  return events.find(({ message, lastTimestamp }) => {
    const takenMs = endMs - Date.parse(lastTimestamp);
    const isEdit = message.endsWith("definition changed, will be restarted");
    return isEdit && takenMs >= -CLOCK_SLACK_MS && takenMs <= graceMs + CLOCK_SLACK_MS;
  });
}

/** With what the pod was Ready, if an edit of this container ended that. */
function describeEdit({ pod, events }: ExplainContainerInput): string[] {
  const restart = findRestartThatFailed(pod, events);
  const source = findReplacement(events, restart, NEW_VALUES);
  if (source !== undefined) return [`the pod was Ready until its restart of ${restart?.lastTimestamp}: ${source}`];
  const update = findReplacement(events, restart, IMAGE_UPDATE);
  if (update !== undefined) return [`${update}; an image with which the pod does not become Ready is rolled back`];
  const edit = findEditThatFailed(pod, events);
  if (edit === undefined || pod.metadata.annotations?.[ROLLBACK_ANNOTATION]) return [];
  return [
    `the pod was Ready until its edit of ${edit}: undo the edit to go back; with the annotation ${ROLLBACK_ANNOTATION}: on-failure the next one is undone automatically`,
  ];
}

const shorten = (line: string) => (line.length > LOG_LINE_CHARS ? `${line.slice(0, LOG_LINE_CHARS)}…` : line);

/** Why it waits, by the reason of its status. */
function explainReason(container: ExplainContainerInput): Explained | undefined {
  const { reason, message = "" } = container.status.state.waiting ?? {};
  const explain = findWaitingReason(reason)?.explain;
  if (explain === undefined || explain === "start" || explain === "last end") return undefined;
  if (typeof explain === "function") return explain(message, container);
  return { ...explain, facts: [...(explain.facts ?? []), ...(message === "" ? [] : [message])] };
}

/** The container ended, now or before its last restart. */
function explainEnd(input: ExplainContainerInput): Explained | undefined {
  const { status, spec, isInit, events } = input;
  const isWaitingToRestart = status.state.waiting?.reason === "CrashLoopBackOff";
  const end =
    status.state.terminated ??
    (isWaitingToRestart || status.restartCount > 0 ? status.lastState.terminated : undefined);
  if (!end) return undefined;
  const stop = findStop(end, events);
  const killer = /failed (liveness|startup) probe/.exec(stop?.message ?? "")?.[1] as "liveness" | "startup" | undefined;
  // A container that runs again is not ready because of its probe, if it has one; an end by an edit explains nothing.
  const isUpAgain = status.state.running && !status.ready;
  if (isUpAgain && killer === undefined && (spec.readinessProbe || stop !== undefined)) return undefined;
  const facts = [describeEnd(end), ...nextRestart(input)];
  if (end.reason === "ContainerCannotRun" || end.reason === "StartError") {
    const failure = explainStartFailure(spec, end.message ?? "");
    return { ...failure, facts: [...(failure.facts ?? []), ...nextRestart(input)] };
  }
  if (end.reason === "OOMKilled") {
    const limit = spec.resources?.limits?.memory;
    const [bound, fix] =
      limit === undefined
        ? ["the machine has", "give it a memory limit that fits, or free memory"]
        : [`its limit of ${limit}`, "raise resources.limits.memory, or make it use less"];
    return { problem: `it used more memory than ${bound} (OOMKilled)`, facts, fix };
  }
  // Many programs exit with 0 on their stop signal: the exit code does not tell why the container ended.
  if (killer !== undefined) {
    const kinds = [killer, ...(isUpAgain ? ["readiness"] : [])];
    const probes = kinds.map((kind) => lastProbe(events, new RegExp(`^${kind} `, "i")));
    const longer =
      killer === "startup" ? "raise its failureThreshold" : "add a startupProbe or raise initialDelaySeconds";
    return {
      problem: `its ${killer} probe failed, so it was restarted`,
      facts: [...probes.filter((probe) => probe !== undefined), ...facts],
      fix: `${fixOfProbe(probes[0] ?? "", spec[`${killer}Probe`])}; if the start takes long, ${longer}`,
    };
  }
  const hook = events.findLast(({ reason }) => reason === "FailedPostStartHook");
  if (hook && events.some(({ reason, message }) => reason === "Killing" && message.includes(hook.reason))) {
    return {
      problem: "its postStart hook failed, so it was restarted",
      facts: [hook.message.trim(), ...facts],
      fix: "correct lifecycle.postStart: the program may not be up yet when the hook runs",
    };
  }
  if (stop !== undefined) {
    const update = findReplacement(events, stop, IMAGE_UPDATE);
    const source = findReplacement(events, stop, NEW_VALUES);
    const kind = update === undefined ? "new values of its environment" : "an update of its image";
    const cause = update ?? source;
    const problem = cause === undefined ? "kubelet-ts stopped it" : `it was restarted by ${kind}`;
    return { problem, facts: [cause ?? stop.message, ...facts], fix: "" };
  }
  const sandbox = Date.parse(events.findLast(({ reason }) => reason === "SandboxChanged")?.lastTimestamp ?? "");
  const nextMs = Date.parse(status.state.running?.startedAt ?? input.now.toISOString());
  if (sandbox >= Date.parse(end.finishedAt ?? "") - CLOCK_SLACK_MS && sandbox <= nextMs) {
    const problem = "it ended with the sandbox of its pod, as when Docker is restarted, and starts in a new one";
    const fix = 'with "live-restore": true in /etc/docker/daemon.json containers outlive a restart of Docker';
    return { problem, facts, fix };
  }
  if (end.exitCode === 0) {
    return {
      problem: "its program ended with success, and is started again because restartPolicy is Always",
      facts,
      fix: `${status.state.running ? "unless it was stopped from outside (docker stop, an edit): " : ""}keep the program in the foreground, or set restartPolicy: OnFailure or Never for a pod that ends; a shell ends at once unless it has a command, or stdin: true`,
    };
  }
  const what =
    isInit && !isSidecar(spec)
      ? "it failed, and the containers of the pod wait for it"
      : "its program ends with an error";
  return { problem: `${what} (exit code ${end.exitCode})`, facts, fix: fixOfExit(end.exitCode, input) };
}

function fixOfExit(code: number, { log, pod, spec, status }: ExplainContainerInput): string {
  const text = log.join("\n");
  if (/address (?:already )?in use|EADDRINUSE/i.test(text)) {
    return pod.spec.hostNetwork
      ? "another program of this machine has the port: choose another one"
      : "its program, or another one of the pod, has the port already: give each its own, and start each once";
  }
  if (/read-only file system|EROFS/i.test(text)) {
    const mount = spec.volumeMounts?.find(({ mountPath }) => text.includes(mountPath));
    return mount === undefined
      ? "mount an emptyDir where it writes, or set readOnlyRootFilesystem: false"
      : `volume ${mount.name} at ${mount.mountPath} is read-only: remove readOnly there; ConfigMaps, Secrets and projected volumes always are: write to an emptyDir`;
  }
  if (/argument list too long|E2BIG/i.test(text)) {
    return "command, args and env are longer than the kernel takes (128 KiB each): mount the text as a file of a ConfigMap";
  }
  if (/can't fork|fork: |cannot create (?:native )?thread|pthread_create/i.test(text)) {
    return "it has as many processes and threads as it may: raise --pod-max-pids, or nproc in the annotation kubelet-ts.io/ulimits";
  }
  if (/too many open files|EMFILE/i.test(text)) {
    return "raise nofile in the annotation kubelet-ts.io/ulimits; for inotify, sysctl fs.inotify.max_user_instances of this machine";
  }
  if (/operation not permitted|EPERM\b|are you root|must be root/i.test(text)) return FIX_OF_PRIVILEGES;
  if (/permission denied|EACCES/i.test(text)) return "check runAsUser, fsGroup and the mode of the files it uses";
  if (/^exec \S+: no such file or directory$/m.test(text)) {
    return "the program of its first line (#!) is not in the image; a script with Windows line ends asks for one that ends with a carriage return";
  }
  // A shell reads a program for another processor as a script.
  if (/exec format error|\x7fELF/i.test(text)) return FIX_OF_FORMAT;
  if (/is a directory|EISDIR/i.test(text)) {
    const made = spec.volumeMounts?.find(({ subPath }) => subPath !== undefined && subPath !== "");
    if (made) {
      return `${made.mountPath} is a directory if volume ${made.name} has no file ${made.subPath}: correct subPath, or add the file`;
    }
  }
  if (/no space left on device|ENOSPC/i.test(text)) return fixOfSpace(pod, spec, text);
  const reference = /\$\([A-Za-z_][\w.-]*\)/.exec(text)?.[0];
  if (reference !== undefined) {
    return `${reference} stayed as it is: it is no variable of the container, or one that env has further below`;
  }
  if (UNKNOWN_NAME.test(text)) return fixOfName(pod);
  if (/connection refused|ECONNREFUSED|could not connect/i.test(text)) {
    return "nothing listens where it connects: check that the other program is ready, its address and its port, and that a Service in between has a Ready pod (kubelet-ts explain service NAME)";
  }
  if (code === 137) {
    return `it was killed (SIGKILL): by ${spec.livenessProbe ? "its liveness probe (see kubelet-ts events), " : ""}docker kill, the kernel, or because it ignored SIGTERM`;
  }
  const all = `kubelet-ts logs ${pod.metadata.name} --container=${spec.name}${status.state.terminated ? "" : " --previous"} shows all of it`;
  return FIXES_BY_CODE[code] ?? `its log ${log.length > 0 ? "above " : ""}says why; ${all}`;
}

const FIXES_BY_CODE: Readonly<Record<number, string>> = {
  126: "its command is not an executable file: check its mode and the #! line",
  127: "its command is not in the image: check command, args and PATH",
  139: "it crashed (SIGSEGV): is the image made for this processor?",
  143: "it was ended from outside (SIGTERM)",
};

/** Volumes with a size of their own are full first. */
function fixOfSpace({ spec: { volumes = [] } }: Pod, { volumeMounts = [] }: Container, text: string): string {
  if (/\/dev\/shm|shared memory/.test(text) && !volumeMounts.some(({ mountPath }) => mountPath === "/dev/shm")) {
    return "/dev/shm has 64 MB: mount an emptyDir of medium: Memory, with a sizeLimit, there";
  }
  const sized = volumeMounts.flatMap(({ name, mountPath }) => {
    const size = volumes.find((volume) => volume.name === name)?.emptyDir?.sizeLimit;
    return size === undefined ? [] : [`${name} at ${mountPath} (${size})`];
  });
  const disk = "free space where images, the root directory and its volumes are: df -h, docker system df";
  return sized.length === 0 ? disk : `raise emptyDir.sizeLimit of ${sized.join(", ")}, or ${disk}`;
}

const FIX_OF_PRIVILEGES =
  "the kernel refuses it: run it as a user who may (runAsUser), or add the capability to securityContext.capabilities.add: CHOWN and FOWNER for owners of files, SYS_ADMIN to mount, NET_ADMIN for networks, NET_RAW for ping";

/** Messages of libc, Go, Node.js, Python and psql about a name that does not resolve. */
const UNKNOWN_NAME =
  /no such host|could not (?:translate|resolve)|bad address|name or service not known|name does not resolve|name resolution|no servers could be reached|NXDOMAIN|ENOTFOUND|EAI_AGAIN/i;

/** Source: the DNS policies with which a pod resolves the names of Services. */
function fixOfName({ spec: { dnsPolicy = "ClusterFirst", hostNetwork = false } }: Pod): string {
  if (dnsPolicy === "ClusterFirstWithHostNet" || (dnsPolicy === "ClusterFirst" && !hostNetwork)) {
    return "a name does not resolve: a pod is found by the name of a Service, while a pod of it is Ready; other hosts by DNS or hostAliases";
  }
  if (dnsPolicy === "None") {
    return "a name does not resolve: correct spec.dnsConfig.nameservers, or set dnsPolicy: ClusterFirst";
  }
  const policy = hostNetwork ? "ClusterFirstWithHostNet" : "ClusterFirst";
  return `a name does not resolve: with dnsPolicy ${dnsPolicy} a pod does not resolve the names of Services: set dnsPolicy: ${policy}, or use DNS or hostAliases`;
}

function explainProbe({ status, spec, events }: ExplainContainerInput): Explained | undefined {
  if (!status.state.running || status.ready) return undefined;
  const isStarting = spec.startupProbe !== undefined && status.started === false;
  const kind = isStarting ? "Startup" : "Readiness";
  const failure = lastProbe(events, new RegExp(`^${kind}`));
  if (!spec.readinessProbe && !isStarting) return undefined;
  const probe = isStarting ? spec.startupProbe : spec.readinessProbe;
  return {
    problem: `its ${kind.toLowerCase()} probe ${failure ? "fails" : "has not succeeded yet"}`,
    ...(failure && { facts: [failure] }),
    fix: fixOfProbe(failure ?? "", probe),
  };
}

/** A liveness probe that never runs: upstream counts that neither as a failure nor as a success. */
export function explainIdleProbe(
  spec: Container,
  { name, state }: ContainerStatus,
  events: readonly CoreEvent[],
): Cause | undefined {
  const sinceMs = Date.parse(state.running?.startedAt ?? "");
  const own = events.filter(({ lastTimestamp }) => Date.parse(lastTimestamp) >= sinceMs);
  const failure = lastProbe(own, /^Liveness probe errored: port/);
  if (failure === undefined) return undefined;
  const problem = "its liveness probe cannot be run, so that nothing restarts it";
  return { subject: `container ${name}`, problem, facts: [failure], fix: fixOfProbe(failure, spec.livenessProbe) };
}

function fixOfProbe(failure: string, probe: Probe | undefined): string {
  if (/connection refused/i.test(failure)) {
    return "nothing listens on the probe's port: check the port, and that the program listens on 0.0.0.0, not 127.0.0.1";
  }
  if (failure.includes("server gave HTTP response to HTTPS client")) {
    return "the program speaks HTTP, not HTTPS: set the probe's scheme: HTTP";
  }
  const port = /port "([^"]*)" not found/.exec(failure)?.[1];
  if (port !== undefined) {
    return `no port of the container has the name "${port}": set the probe's port to its number, or give a port of the container that name`;
  }
  if (probe?.grpc && /rpc/.test(failure)) {
    return "the program must serve grpc.health.v1.Health on the probe's port: correct the port, or use httpGet or tcpSocket";
  }
  const status = /statuscode: (\d+)/.exec(failure)?.[1];
  if (status === "400" && probe?.httpGet?.scheme !== "HTTPS") {
    return "the program responds with 400: if it speaks HTTPS, set the probe's scheme: HTTPS; or check the probe's path";
  }
  if (status === "401" || status === "403")
    return `the program responds with ${status}: probe a path without a login, or add its header to httpGet.httpHeaders`;
  if (status !== undefined) {
    return `the program responds with ${status}: check the probe's path, or what the program waits for`;
  }
  const missing = /exec: "([^"]*)": (?:executable file not found|stat .*no such file)/.exec(failure)?.[1];
  if (missing !== undefined) return `the probe's command "${missing}" is not in the image: name one that is there`;
  if (/timed out|has elapsed|deadline exceeded|Client\.Timeout/i.test(failure)) {
    return `it takes longer than timeoutSeconds (${probe?.timeoutSeconds ?? 1}): raise it, or let the probe do less`;
  }
  if (probe?.exec && failure !== "") {
    return "its command ends with an error: correct the command, or what it checks; kubelet-ts exec POD -- COMMAND shows it";
  }
  const fields = probe?.exec ? "command" : probe?.httpGet ? "path and port" : "port";
  return `check the probe's ${fields} and timeoutSeconds`;
}

/** The event of the kubelet's stop of this run of the container, if it did that. */
function findStop(
  { startedAt, finishedAt }: ContainerStateTerminated,
  events: readonly CoreEvent[],
): CoreEvent | undefined {
  const [startMs, endMs] = [Date.parse(startedAt ?? ""), Date.parse(finishedAt ?? "")];
  return events.findLast(({ reason, lastTimestamp }) => {
    const atMs = Date.parse(lastTimestamp);
    return reason === "Killing" && !(atMs < startMs) && !(atMs > endMs + CLOCK_SLACK_MS);
  });
}

/** Times of events and of containers come from two clocks, in whole seconds. */
const CLOCK_SLACK_MS = 2000;
const IMAGE_UPDATE = /^ImageUpdat(ing|eFailed)$/;
const NEW_VALUES = /^EnvironmentChanged$/;
/** A container ends at once when the new image or value is there. */
const REPLACED_WITHIN_MS = 30_000;

/** A container that waits for the others has no fix of its own. */
function explainProgress({ pod, spec, status, events, isInit }: ExplainContainerInput): Explained {
  const { running, waiting } = status.state;
  const { reason, message } = waiting ?? {};
  if (running && isInit) return { problem: "it still runs; the next container waits for its end", fix: "" };
  if (running && status.started === false) {
    return {
      problem: "its postStart hook has not ended",
      fix: "if that takes long, the hook waits for something: correct lifecycle.postStart",
    };
  }
  if (isToBeStarted(status) && !message) {
    const init = findBlockingInit(pod, spec.name);
    if (init !== undefined) return { problem: `it waits for init container ${init}`, fix: "" };
    return { ...describeStart(spec, events), fix: "" };
  }
  return { problem: reason ?? "it is not ready", ...(message && { facts: [message] }), fix: "" };
}

/** Whether a container waits for its first start, and not because something failed. */
export const isToBeStarted = ({ state: { waiting } }: ContainerStatus): boolean =>
  waiting !== undefined && findWaitingReason(waiting.reason ?? "ContainerCreating")?.explain === "start";

/** Whether the volumes and the network of a pod are still missing. Source: the condition PodReadyToStartContainers. */
export const isBeingSetUp = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "PodReadyToStartContainers" && is === "False") ?? false;

/** The init container that has to end, or the sidecar that has to start, before this container; undefined: none. */
export function findBlockingInit({ spec, status }: Pod, name: string): string | undefined {
  for (const init of spec.initContainers ?? []) {
    if (init.name === name) return undefined;
    const found = status?.initContainerStatuses?.find((one) => one.name === init.name);
    if (!(isSidecar(init) ? found?.started : found?.state.terminated?.exitCode === 0)) return init.name;
  }
  return undefined;
}

/** The step of its start that a container waits for. */
function describeStart({ image = "" }: Container, events: readonly CoreEvent[]): { problem: string; facts: string[] } {
  const last = events.findLast(({ reason }) => ["Pulling", "Pulled", "Created"].includes(reason));
  if (last?.reason === "Pulling") {
    return { problem: `its image "${image}" is being pulled`, facts: [`since ${last.lastTimestamp}`] };
  }
  return { problem: `it is being ${last?.reason === "Created" ? "started" : "created"}`, facts: [] };
}

/** `once`, `3 times`. */
export const countTimes = (count: number): string => (count === 1 ? "once" : `${count} times`);

/** The newest result of a failed probe, with its time. */
function lastProbe(events: readonly CoreEvent[], kind: RegExp): string | undefined {
  const event = events.findLast(({ reason, message }) => reason === "Unhealthy" && kind.test(message));
  return event && `${event.message.trim()} (${event.lastTimestamp}, ${countTimes(event.count)})`;
}

function describeEnd({ exitCode, reason, signal, finishedAt, message }: ContainerStateTerminated): string {
  const how = signal ? `signal ${signal}` : `exit code ${exitCode}`;
  return `ended at ${finishedAt} with ${how}${reason ? ` (${reason})` : ""}${message ? `: ${message.trim()}` : ""}`;
}

/** `CrashLoopBackOff` says how long it waits after the last end. */
function nextRestart({ status, now }: ExplainContainerInput): string[] {
  const { reason, message = "" } = status.state.waiting ?? {};
  if (reason !== "CrashLoopBackOff") return [];
  const end = Date.parse(status.lastState.terminated?.finishedAt ?? "");
  const delay = /back-off (?:(\d+)m)?(?:(\d+)s)?/.exec(message);
  if (!delay || Number.isNaN(end)) return [`restarted ${countTimes(status.restartCount)}`];
  const at = end + (Number(delay[1] ?? 0) * 60 + Number(delay[2] ?? 0)) * 1000;
  const seconds = Math.max(0, Math.round((at - now.getTime()) / 1000));
  return [`restarted ${countTimes(status.restartCount)}; next start in ${seconds} s`];
}
