import type { CoreEvent } from "../base/api/event.ts";
import type { Container } from "../base/api/pod.ts";
import { nearestName } from "../base/text/nearest-name.ts";

/** The fields of a container on which its start depends. */
type Program = Pick<Container, "image" | "command" | "args" | "volumeMounts">;

/** A container that waits, and what is known about it. */
export interface WaitingContainer {
  spec: Program;
  /** Events of this container, oldest first. */
  events: readonly CoreEvent[];
  /** Names of images that this machine has. */
  images: readonly string[];
}

/** A problem and its fix; without a fix where the pod only waits. */
export interface Explained {
  problem: string;
  /** Facts behind it, one line each. */
  facts?: string[];
  fix: string;
  /** An object is not there: a manifest that was refused may have it. */
  lacksObject?: true;
}

interface WaitingReasonEntry {
  /**
   * Text of `explain` and the page, to which the message of the reason is added, or a function of that message.
   * `start`: the step of its start that the container has reached. `last end`: how it ended before.
   */
  explain: Explained | ((message: string, container: WaitingContainer) => Explained) | "start" | "last end";
  /** Waiting does not help: `--runonce` gives up. */
  isHopeless?: true;
  /** Upstream's words in the response to a request for the log of a container that has none. */
  logText?: string;
}

/** For a program that the kernel cannot execute. */
export const FIX_OF_FORMAT =
  "use an image for the processor of this machine (uname -m), or add #!/bin/sh to the script";
export const RETRIED = "the engine's message names the cause; the kubelet retries automatically";

/**
 * Why a container waits, or a step towards its start failed. A new reason is an entry here and the place that reports it.
 */
const WAITING_REASONS = {
  ContainerCreating: { explain: "start" },
  PodInitializing: { explain: "start" },

  ErrImagePull: { explain: explainPull, isHopeless: true, logText: "image can't be pulled" },
  ImagePullBackOff: { explain: explainPull, isHopeless: true, logText: "trying and failing to pull image" },
  RegistryUnavailable: { explain: explainPull, isHopeless: true },
  ImageInspectError: { explain: { problem: "its image cannot be inspected", fix: RETRIED }, isHopeless: true },
  InvalidImageName: {
    explain: (message, { spec }) => ({
      problem: `"${spec.image ?? ""}" is not an image name`,
      facts: factOf(message),
      fix: "correct spec.containers[].image",
    }),
    isHopeless: true,
  },
  ErrImageNeverPull: {
    explain: (_, { spec: { image = "" }, images }) => ({
      problem: `the image "${image}" is not on this machine, and imagePullPolicy is Never`,
      facts: likeImage(image, images),
      fix: "load it with docker load or --images-dir, or set imagePullPolicy: IfNotPresent",
    }),
    isHopeless: true,
  },

  CreateContainerConfigError: { explain: explainConfig, isHopeless: true },
  CreateContainerError: { explain: explainConfig, isHopeless: true },
  RunContainerError: { explain: (message, { spec }) => explainStartFailure(spec, message), isHopeless: true },
  CrashLoopBackOff: { explain: "last end", isHopeless: true },
  FailedMount: { explain: explainMount },

  WaitingForDependency: { explain: explainDependency },
  DependencyTimeout: { explain: explainDependency },
  DependencyNotFound: {
    explain: (problem) => ({ problem, fix: "add that pod, or correct its name in the annotation", lacksObject: true }),
  },
  DependencyCycle: {
    explain: (message) => ({ problem: message, fix: "take one of these pods out of the annotation of another" }),
  },

  // Events have these; the containers of the pod show ContainerCreating.
  FailedCreatePodSandBox: { explain: "start" },
  CreatePodSandboxError: { explain: "start" },
  FailedCreatePodContainer: { explain: "start" },
  NetworkNotReady: { explain: "start" },
} satisfies Record<string, WaitingReasonEntry>;

export type WaitingReasonName = keyof typeof WAITING_REASONS;

/** @returns undefined for a reason that only another kubelet has */
export const findWaitingReason = (reason = ""): WaitingReasonEntry | undefined =>
  Object.hasOwn(WAITING_REASONS, reason) ? WAITING_REASONS[reason as WaitingReasonName] : undefined;

/** The fix for a step that failed while no container waits: an edit is prepared; "" where none is known. */
export function fixOfStep(reason: string, message: string): string {
  const explain = findWaitingReason(reason)?.explain;
  if (typeof explain === "function") return explain(message, { spec: {}, events: [], images: [] }).fix;
  return (typeof explain === "object" ? explain : explainMessage(message))?.fix ?? "";
}

/** A step towards a running container failed in a way the status has a name for. */
export class PodStepError extends Error {
  /** When another try makes sense; absent = the caller's own back-off. Unit: milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Reason of the event; absent = `Failed`. */
  readonly eventReason: string | undefined;

  constructor(
    readonly reason: WaitingReasonName,
    message: string,
    options?: { retryAfterMs?: number | undefined; eventReason?: string | undefined; cause?: unknown },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options?.retryAfterMs;
    this.eventReason = options?.eventReason;
  }
}

const factOf = (message: string): string[] => (message === "" ? [] : [message]);

function likeImage(image: string, images: readonly string[]): string[] {
  const near = nearestName(image, images);
  return near === undefined ? [] : [`this machine has an image "${near}": is that the one?`];
}

function explainPull(waitingMessage: string, { spec, events, images }: WaitingContainer): Explained {
  // While it backs off, the status has lost what the registry said.
  const failed = events.findLast((event) => event.reason === "Failed" && /pull image/i.test(event.message));
  const message = failed?.message ?? waitingMessage;
  const isDenied = /denied|unauthorized|authentication/i.test(message);
  const isUnreachable =
    /no such host|i\/o timeout|deadline exceeded|connection refused|network is unreachable|lookup /i.test(message);
  const image = spec.image ?? "";
  const isPresent = images.includes(image);
  return {
    problem: `the image "${image}" cannot be pulled`,
    facts: [...factOf(message), ...(isPresent ? [] : likeImage(image, images))],
    fix: isPresent
      ? "this machine has the image, and its imagePullPolicy is Always: IfNotPresent uses it"
      : image.startsWith("localhost/")
        ? `localhost is podman's name for its own images: podman save ${image} | docker load`
        : isDenied
          ? "check the name, and give the registry's credentials: docker login, or imagePullSecrets with a Secret in the manifest"
          : isUnreachable
            ? "the registry cannot be reached: check DNS and proxy of the engine, or load the image with docker load or --images-dir"
            : "check name and tag of the image; docker pull shows the same response",
  };
}

/** Messages of engines and of this kubelet about a start that failed, and what they mean. $1 to $3: groups of the expression. */
const MESSAGES: readonly (readonly [RegExp, problem: string, fix: string, lack?: "lacks object"])[] = [
  [
    /runs already, from the root directory (\S+)/,
    "it runs already, by a kubelet-ts of the root directory $1, or since before that one was moved",
    "start with --root-dir=$1, or remove the pod there: kubelet-ts down --all --root-dir=$1; a second kubelet needs a node name of its own (--hostname-override=NAME)",
  ],
  [
    /couldn't find key (\S+) in Secret .* file "([^"]*)"/,
    'the file "$2", from which a Secret has its key "$1", is not there or cannot be read',
    "write the file $2 (it is read at once), or correct its path in the annotation kubelet-ts.io/secret-from",
  ],
  [
    /couldn't find key (\S+) in Secret .* credential "([^"]*)"/,
    'the service has no credential "$2", from which a Secret has its key "$1"',
    "add LoadCredential=$2:/PATH to the unit of kubelet-ts and restart it",
  ],
  [
    /couldn't find key (\S+) in (ConfigMap|Secret) ([^\s",]+)/i,
    'the key "$1" is missing in $2 "$3"',
    "add the key, or correct its name in the reference",
    "lacks object",
  ],
  [
    /references non-existent (config|secret) key: (\S+)/,
    'the $1 of a volume has no key "$2"',
    "add the key, or correct items of the volume",
    "lacks object",
  ],
  [
    /configmap "?([^"\s]+)"? not found/i,
    'the ConfigMap "$1" is missing',
    'add the ConfigMap "$1" to the manifest, or mark the reference optional',
    "lacks object",
  ],
  [
    /secret "?([^"\s]+)"? not found/i,
    'the Secret "$1" is missing',
    'add the Secret "$1" to the manifest, or mark the reference optional',
    "lacks object",
  ],
  [
    /persistentvolumeclaim "?([^"\s]+)"? not found/i,
    'the PersistentVolumeClaim "$1" is missing',
    'add the PersistentVolumeClaim "$1" to the manifest, or correct claimName',
    "lacks object",
  ],
  [
    /could not select device driver .*gpu/,
    "the engine has no driver for GPUs",
    "install the NVIDIA Container Toolkit on this machine, run nvidia-ctk runtime configure --runtime=docker and restart Docker; or take the GPU out of resources.limits",
  ],
  [
    /network (\S+) not found/,
    'the Docker network "$1" does not exist',
    "make it: docker network create $1; or correct its name in the annotation",
  ],
  [
    /in network "([^"]*)".*(?:no available IPv[46] addresses|Address already in use|does not belong to any)/,
    'it gets no address, or not that of its annotation, in the Docker network "$1"',
    "docker network inspect $1 shows its subnet and the addresses in use: make it again with a larger --subnet, or correct the annotation kubelet-ts.io/ip",
  ],
  [
    /(?:write|open) \/proc\/sys\/(\S+): /,
    "the kernel refuses the sysctl $1 or its value",
    "correct its name and value in spec.securityContext.sysctls",
  ],
  [
    /error mounting "([^"]*)" to rootfs at "([^"]*)".* not a directory/,
    '"$1" cannot be mounted at "$2": one is a directory, the other one a file',
    "mount a directory on a directory and a file on a file: subPath names one file of a volume, hostPath.type: File demands one",
  ],
  [
    /failed to mount local volume.*no such device/,
    "the kernel of this machine does not know the file system of a volume",
    "install its driver on this machine: nfs-common or nfs-utils for NFS, cifs-utils for CIFS; then modprobe",
  ],
  [
    /failed to mount local volume.*(?:connection refused|timed out|no route|unreachable|no such host)/,
    "the server of a volume does not answer",
    "check server and path of the volume, and that this machine reaches it",
  ],
  [
    /OOM-killed|memory limit too low/,
    "its memory limit is too low to start a program",
    "raise resources.limits.memory",
  ],
  [
    /listen \S+ (\S+):\d+: bind: cannot assign requested address/,
    "this machine has no address $1",
    "correct hostIP of the port, or remove it; ip address shows the addresses of this machine",
  ],
  [
    /unknown capability: "?(?:CAP_)?([^"\s]+)/,
    'there is no capability "$1"',
    "correct the name in securityContext.capabilities, without CAP_: man 7 capabilities has them all",
  ],
  [
    /path (\S+) is mounted on (\S+) but it is not a shared/,
    "the mountPropagation of a volume needs a shared mount, which $2 of this machine is not",
    "run mount --make-rshared $2 on this machine, or remove mountPropagation of the mount of $1",
  ],
  [
    /error setting rlimits?.*not permitted/,
    "the engine may not set its ulimits",
    "lower them in the annotation kubelet-ts.io/ulimits, or raise those of the engine (LimitNOFILE, LimitMEMLOCK of docker.service) and restart it",
  ],
  [
    /working directory '([^']*)' is invalid/,
    'workingDir "$1" is not an absolute path',
    "begin workingDir with /, or remove it: the image has one",
  ],
  [/missing value for ([^,]+)/, "subPathExpr names $1, which is not set", "set $1 in env, or correct subPathExpr"],
  [/Cannot mkdir: (\S+) is not a directory/, "$1 is not a directory of the image", "correct workingDir"],
  [
    /unable to find user ([^:\s]+)/,
    'the image has no user "$1" in /etc/passwd',
    "set securityContext.runAsUser to a number, or add the user to the image",
  ],
  [/exec format error/, "its program is made for another processor, or is a script without a #! line", FIX_OF_FORMAT],
  [
    /custom device "([^"]*)": no such file/,
    'this machine has no device "$1"',
    "correct the path of the device, or load its driver on this machine",
  ],
  [
    /cannot load seccomp profile "([^"]*)": open/,
    "its seccomp profile is not on this machine",
    "write the profile to $1, or set seccompProfile.type: RuntimeDefault",
  ],
  [
    /non-numeric user \(([^)]*)\)/,
    'the image names its user "$1" without a number, and runAsNonRoot asks for one',
    "set securityContext.runAsUser to the number of that user: /etc/passwd of the image has it",
  ],
  [
    /runAsNonRoot|runAsUser breaks non-root policy/,
    "it runs as root, by runAsUser or its image, and runAsNonRoot forbids it",
    "set securityContext.runAsUser to a user other than 0, use an image that has a USER, or remove runAsNonRoot",
  ],
  [
    /(?:: |\()operation not permitted/,
    "the kernel refuses a privilege of it",
    "take the privilege the message names out of securityContext; an engine in a container or without root has fewer of them",
  ],
  [
    /claim "([^"]*)": volume "([^"]*)" not found/,
    'the claim "$1" names the volume "$2", which is not there, or which another claim has',
    'add a PersistentVolume "$2", or delete the claim and apply it without volumeName',
    "lacks object",
  ],
  [
    /no space left on device/,
    "a disk is full",
    "free space where images, the root directory and its volumes are: df -h, docker system df",
  ],
];

/** A message whose cause is known; undefined for others. */
export function explainMessage(message: string): Explained | undefined {
  for (const [pattern, problem, fix, lack] of MESSAGES) {
    const found = pattern.exec(message);
    if (!found) continue;
    // The kernel names a sysctl by its path.
    const value = (group: number) =>
      found[0].includes("/proc/sys/") ? found[group]?.replaceAll("/", ".") : found[group];
    const fill = (text: string) => text.replace(/\$(\d)/g, (_, group: string) => value(Number(group)) ?? "");
    return { problem: fill(problem), facts: [message], fix: fill(fix), ...(lack && { lacksObject: true }) };
  }
  return undefined;
}

const explainOr = (message: string, problem: string, fix: string): Explained =>
  explainMessage(message) ?? { problem, facts: [message], fix };

function explainConfig(message: string): Explained {
  return explainOr(message, "the container cannot be created", "correct the field the message names");
}

/** A volume of a pod could not be set up. */
export function explainMount(message: string): Explained {
  return explainOr(message, "a volume cannot be made ready", fixOfMount(message));
}

/** Source: the kubelet's messages of hostPath types. */
function fixOfMount(message: string): string {
  const [, path, kind] = /hostPath type check failed: (.+) is not a (directory|file)/.exec(message) ?? [];
  if (path === undefined) return "correct the volume in the manifest; the kubelet retries automatically";
  const type = kind === "file" ? "FileOrCreate" : "DirectoryOrCreate";
  return `make that ${kind}, correct hostPath.path, or set hostPath.type: ${type}`;
}

/** The engine could not start the program of a container. */
export const explainStartFailure = (container: Program, message: string): Explained =>
  explainOr(message, "its program cannot be started", fixOfStart(container, message));

function fixOfStart({ command = [], args = [], volumeMounts = [] }: Program, message: string): string {
  const [program = "", ...others] = [...command, ...args];
  if (others.length === 0 && / |&&|\|/.test(program)) {
    return `a command is a list of words and knows no shell: write command: ["sh", "-c", ${JSON.stringify(program)}]`;
  }
  if (!/exec|executable|no such file|permission denied/.test(message)) {
    return "the engine's message names what refused it: correct that field";
  }
  const mount = volumeMounts.find(({ mountPath, subPath }) => !subPath && hides(mountPath, program));
  const isInMount = mount !== undefined && program.startsWith("/");
  if (isInMount && message.includes("permission denied")) {
    return `${program} of volume ${mount.name} is not executable: set defaultMode: 0755 in the volume, or run it with sh`;
  }
  if (mount && !message.includes("permission denied")) {
    return `volume ${mount.name} hides what the image has in ${mount.mountPath}: mount it elsewhere, or one file of it with subPath`;
  }
  if (/(?:^|\/)bash$/.test(program) && !message.includes("permission denied")) {
    return "most small images have no bash: write sh in its place";
  }
  return `check that ${JSON.stringify(program || "the image's entrypoint")} is a file of the image, and executable`;
}

/** Directories of programs that are named without a path. */
const PROGRAM_DIRECTORIES = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/** Whether a volume at this path covers the directory of the program. */
function hides(mountPath: string, program: string): boolean {
  const path = mountPath.replace(/\/+$/, "");
  const places = program.startsWith("/") ? [program] : program.includes("/") ? [] : PROGRAM_DIRECTORIES;
  return places.some((place) => place === path || place.startsWith(`${path}/`));
}

/** Our own messages say in a sentence what the pod waits for. */
function explainDependency(message: string): Explained {
  const name = /pod "[^"]*\/([^"/]+)"/.exec(message)?.[1];
  return { problem: message, fix: name === undefined ? "" : `kubelet-ts explain ${name} says what keeps that pod` };
}
