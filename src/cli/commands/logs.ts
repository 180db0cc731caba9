import type { Pod } from "../../base/api/pod.ts";
import type { LogSelection } from "../../base/model/container-access.ts";
import { EngineError } from "../../base/model/engine-error.ts";
import type { DockerHost } from "../../docker/docker-host.ts";
import { chooseContainers, choosePod, choosePods, findLogTarget, type LogTarget } from "../client/choose-pod.ts";
import { engineOf } from "../client/engine-reader.ts";
import { readKnownPods } from "../client/kubelet-api.ts";
import { CommandError, type CommandIo, type CommandRequest, durationFlag, UsageError } from "../sub-command.ts";

/** Lines of each pod that a selector finds, as with kubectl. */
const SELECTED_TAIL = "10";

/** `kubelet-ts logs`. Returns the exit code. */
export async function runLogs(request: CommandRequest, io: CommandIo): Promise<number> {
  const wanted = parseWanted(request, io.now());
  const { pods: known, instance } = await readKnownPods(request, true);
  const engine = engineOf(request, instance?.dockerEndpoint);
  const pods = await podsOf(request, wanted.pod, known, io);
  // Among several containers, one without a log is reported and the others are shown.
  const found = pods.flatMap((pod) => {
    const chosen = chooseContainers(pod, wanted.container, request.isOn("all-containers"));
    if ("problem" in chosen) return chosen;
    if (chosen.note) io.stderr(`${chosen.note}\n`);
    return chosen.names.map((name) => findLogTarget(pod, name, request.isOn("previous")));
  });
  const problems = found.flatMap((it) => ("problem" in it ? it.problem : []));
  if (problems.length > 0 && problems.length === found.length) throw new CommandError(problems.join("\n"));
  for (const problem of problems) io.stderr(`kubelet-ts logs: ${problem}\n`);
  const targets = found.flatMap((it) => ("problem" in it ? [] : it));
  // One after the other; when followed, interleaved by lines.
  if (wanted.selection.follow)
    await Promise.all(targets.map((target) => printLog(engine, target, wanted, targets.length > 1, io)));
  else for (const target of targets) await printLog(engine, target, wanted, false, io);
  return problems.length > 0 ? 1 : 0;
}

interface WantedLogs {
  /** undefined: the pods that the selector finds. */
  pod: string | undefined;
  container: string | undefined;
  hasPrefix: boolean;
  selection: LogSelection;
}

/** @throws UsageError */
function parseWanted(request: CommandRequest, now: Date): WantedLogs {
  const { positionals, value, isOn } = request;
  const [pod, word, ...others] = positionals;
  const isSelected = value("selector") !== undefined;
  if (pod === undefined && !isSelected) throw new UsageError("name a pod, or give --selector");
  if (pod !== undefined && isSelected) throw new UsageError("give a pod or --selector, not both");
  if (others.length > 0) throw new UsageError(`logs takes a pod and a container (found also "${others.join('", "')}")`);
  if (word !== undefined && value("container") !== undefined) {
    throw new UsageError("the container is named twice, as an argument and with -c");
  }
  const container = word ?? value("container");
  const stream = value("stream") ?? "All";
  const tailLines = wholeNumber("tail", value("tail") ?? (isSelected && !isOn("follow") ? SELECTED_TAIL : undefined));
  // The engine counts lines before it separates the streams. Upstream refuses it, too.
  if (value("tail") !== undefined && stream !== "All")
    throw new UsageError("--tail counts lines of both streams: remove --stream");
  if (isOn("all-containers") && container !== undefined) {
    throw new UsageError("--all-containers and the name of one exclude each other");
  }
  const limitBytes = wholeNumber("limit-bytes", value("limit-bytes"));
  const since = sinceOf(request, value("since-time"), now);
  return {
    pod,
    container,
    hasPrefix: isOn("prefix"),
    selection: {
      stdout: stream !== "Stderr",
      stderr: stream !== "Stdout",
      ...(tailLines !== undefined && { tailLines }),
      ...(limitBytes !== undefined && { limitBytes }),
      ...(since && { since }),
      timestamps: isOn("timestamps"),
      follow: isOn("follow"),
    },
  };
}

/** -1 is none, as with kubectl. */
function wholeNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined || text === "-1") return undefined;
  if (!/^\d+$/.test(text)) throw new UsageError(`--${flag} must be a whole number (found "${text}")`);
  return Number(text);
}

function sinceOf(request: CommandRequest, sinceTime: string | undefined, now: Date): Date | undefined {
  const agoMs = durationFlag(request, "since");
  if (agoMs !== undefined && sinceTime !== undefined) throw new UsageError("give --since or --since-time, not both");
  if (agoMs === undefined && sinceTime === undefined) return undefined;
  const ms = agoMs === undefined ? Date.parse(sinceTime!) : now.getTime() - agoMs;
  if (Number.isNaN(ms))
    throw new UsageError(`--since-time must be a time as in 2026-11-21T08:26:23Z (found "${sinceTime}")`);
  if (ms > now.getTime() && agoMs !== undefined) throw new UsageError("--since must not be negative");
  return new Date(ms);
}

async function podsOf(request: CommandRequest, name: string | undefined, known: readonly Pod[], io: CommandIo) {
  if (name !== undefined) {
    const { pod, note } = await choosePod(request, known, name);
    if (note) io.stderr(`${note}\n`);
    return [pod];
  }
  const { chosen } = choosePods(request, known, []);
  if (chosen.length === 0) io.stderr("No resources found\n");
  return chosen;
}

async function printLog(
  engine: DockerHost,
  { containerId, podName, containerName }: LogTarget,
  wanted: WantedLogs,
  isShared: boolean,
  io: CommandIo,
): Promise<void> {
  // A partial line of one container must not be joined with a line of another.
  const byLine = wanted.hasPrefix || isShared;
  const prefix = wanted.hasPrefix ? `[pod/${podName}/${containerName}] ` : "";
  // A TTY has one stream; stdout and stderr are split into lines separately.
  const prefixers = { stdout: new LinePrefixer(prefix), stderr: new LinePrefixer(prefix) };
  try {
    const log = await engine.containers.logs(containerId, wanted.selection, new AbortController().signal);
    for await (const { stream, data } of log) io.stdout(byLine ? prefixers[stream].push(data) : data);
  } catch (error) {
    if (!(error instanceof EngineError) || error.isUnreachable || error.kind === "malformed") throw error;
    const { message } = error;
    throw new CommandError(
      error.kind === "not-found"
        ? `the container "${containerName}" of pod "${podName}" was removed in the meantime; try again`
        : `the log of container "${containerName}" cannot be read: ${message}`,
    );
  }
  for (const prefixer of Object.values(prefixers)) io.stdout(prefixer.end());
}

const LINE_END = 10;

/**
 * Puts a prefix before each line, where pieces are split anywhere. A last line without its end gets one.
 * @returns pieces of whole lines
 */
export class LinePrefixer {
  readonly #prefix: Uint8Array;
  #rest: Uint8Array[] = [];

  constructor(prefix: string) {
    this.#prefix = Buffer.from(prefix, "utf8");
  }

  /** Whole lines so far. */
  push(data: Uint8Array): Uint8Array {
    const out: Uint8Array[] = [];
    let from = 0;
    for (let at = data.indexOf(LINE_END); at >= 0; at = data.indexOf(LINE_END, from)) {
      out.push(this.#prefix, ...this.#rest, data.subarray(from, at + 1));
      this.#rest = [];
      from = at + 1;
    }
    // A copy (`slice` of a Buffer is none): the caller may reuse its memory.
    if (from < data.length) this.#rest.push(new Uint8Array(data.subarray(from)));
    return Buffer.concat(out);
  }

  /** The last line, which has no line end. */
  end(): Uint8Array {
    if (this.#rest.length === 0) return new Uint8Array();
    const out = Buffer.concat([this.#prefix, ...this.#rest, Uint8Array.of(LINE_END)]);
    this.#rest = [];
    return out;
  }
}
