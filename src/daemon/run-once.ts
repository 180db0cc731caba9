import { readNodeName } from "../base/host/node-info.ts";
import { isOfContainer, sampleProcesses } from "../base/host/process-sample.ts";
import { SystemClock } from "../base/host/system-clock.ts";
import { writeAll, writeStderr } from "../base/host/write-all.ts";
import { type DesiredState, isWorkload } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import { podFullName } from "../base/model/pod.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { PodEventRecorder } from "../kubelet/event-recorder.ts";
import { findLogContainer } from "../plan/status/log-container.ts";
import type { ReadOnceResult } from "../sources/desired-state-feed.ts";
import { describeFinding } from "../sources/source-set.ts";
import { type AssembledKubelet, assembleKubelet } from "./assembly/assemble-kubelet.ts";
import { EXIT, type KubeletRun } from "./kubelet-run.ts";
import { wantsColor } from "./logging.ts";
import { RunOnceReport, serializeResults } from "./run-once-report.ts";
import { type RunOnceResult, waitForPods } from "./wait-for-pods.ts";

/** Starts the pods of all sources, waits for them, reports. @returns the exit code */
export async function runOnce({ options, manifests, environment, logger, stop }: KubeletRun): Promise<number> {
  const clock = new SystemClock();
  const report = buildReport(options);
  // The report covers the outcome of each pod; events are shown at a higher verbosity.
  const quiet: Logger = { ...logger, info: logger.debug, warn: logger.debug };
  const recorder = new PodEventRecorder({
    clock,
    logger: quiet,
    nodeName: readNodeName(options.hostnameOverride),
    rate: { perSecond: options.eventRecordQps, burst: options.eventBurst },
  });
  const onPullProgress = report.pull.bind(report);
  const parts = await assembleKubelet({ options, manifests, environment, clock, logger, recorder, onPullProgress });
  const read = await parts.feed.readOnce(stop);
  const hasBadInput = logBadInput(read, logger);
  if (read.state.pods.length === 0 && !read.state.objects) {
    if (!hasBadInput) logger.error("The manifests contain no pod; nothing was started");
    return EXIT.badInput;
  }
  const idle = findIdleObjects(read.state);
  for (const message of idle.messages) logger[idle.isAll ? "error" : "warn"](message);
  if (idle.isAll) return EXIT.badInput;
  await parts.connect(stop);
  await parts.feed.storeRunOnce();
  await parts.preload(stop);
  const outcomes = await startAndWait(parts, read, report, stop);
  const results = await Promise.all(
    outcomes.map(async (result) => {
      const { pod, verdict } = result;
      if (verdict.state !== "failed") return result;
      // The last failure of a probe and the last lines of the container's log.
      const unhealthy = recorder
        .list()
        .findLast(({ reason, involvedObject }) => reason === "Unhealthy" && involvedObject.uid === pod.metadata.uid);
      const message = unhealthy ? `${verdict.message}: ${unhealthy.message.trim()}` : verdict.message;
      const found = verdict.container === undefined ? undefined : findLogContainer(pod, verdict.container, false);
      const { containers } = parts.engine;
      const log = found && "id" in found ? await containers.logTail(found.id, LOG_LINES, stop).catch(() => "") : "";
      const lines = log.split(/\r?\n/).filter((line) => line.trim() !== "");
      return { ...result, verdict: { ...verdict, message }, ...(lines.length > 0 && { log: lines }) };
    }),
  );
  report.finish(options.output === "text" ? results : []);
  if (options.output !== "text") writeAll(1, await serializeResults(results, options.output));
  if (results.some(({ verdict }) => verdict.state === "failed")) return EXIT.failed;
  return hasBadInput ? EXIT.badInput : EXIT.done;
}

/**
 * CronJobs start nothing now, and later this process has ended; no server follows Ingresses.
 * @returns a message for each, and whether nothing else has pods
 */
export function findIdleObjects({ pods, objects = [] }: Pick<DesiredState, "pods" | "objects">) {
  const messages = objects.flatMap(({ kind, object, origin }) => {
    const name = `${kind} "${podFullName(object.metadata)}"`;
    const way = `run "kubelet-ts ${origin === "" || origin === "-" ? "MANIFEST" : origin}", which stays`;
    if (kind === "Ingress") return `${name} is not served with --runonce: ${way} and serves it`;
    if (kind !== "CronJob") return [];
    return `${name} does not run with --runonce: ${way} and starts its Jobs at their times, or write a Job`;
  });
  const workloads = objects.filter(isWorkload);
  const isIdle = workloads.length > 0 && workloads.every(({ kind }) => kind === "CronJob");
  return { messages, isAll: isIdle && pods.length === 0 };
}

function buildReport(options: KubeletOptions): RunOnceReport {
  const out = process.stderr;
  return new RunOnceReport({
    write: writeStderr,
    isTerminal: out.isTTY === true && options.output === "text" && process.env.TERM !== "dumb",
    color: wantsColor(process.env, out.isTTY === true),
    columns: () => out.columns || 80,
  });
}

/** @returns whether a source or a manifest could not be read */
function logBadInput({ failures, findings, duplicates }: ReadOnceResult, logger: Logger): boolean {
  for (const failure of failures) logger.error(failure);
  for (const duplicate of duplicates) logger.warn(duplicate);
  // Sources of files and URLs log their own findings.
  for (const finding of findings.filter(({ file }) => file === "-")) {
    logger[finding.severity === "error" ? "error" : "warn"](describeFinding(finding));
  }
  return failures.length > 0 || findings.some(({ severity }) => severity === "error");
}

async function startAndWait(
  { context, kubelet, workloads, secretValues, probes }: AssembledKubelet,
  { state, failures }: ReadOnceResult,
  report: RunOnceReport,
  signal: AbortSignal,
): Promise<RunOnceResult[]> {
  const { clock, options } = context;
  // Not complete: --runonce starts pods and never removes others.
  workloads.setDesired(state, false, failures.length === 0);
  kubelet.start();
  try {
    return await waitForPods({
      kubelet,
      workloads,
      clock,
      processes: { sample: sampleProcesses, isOfContainer },
      wait: options.runOnceWait,
      timeoutMs: options.runOnceTimeoutMs,
      ...(report.showsProgress && { onProgress: (results) => report.progress(results) }),
      signal,
    });
  } finally {
    workloads.stop();
    secretValues.stop();
    kubelet.stop();
    await probes.stop();
    await context.background.settled();
  }
}

const LOG_LINES = 10;
