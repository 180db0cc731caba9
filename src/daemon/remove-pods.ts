import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../base/files/whole-file.ts";
import { lockRootDir, prepareRootDirectory, RootDirectoryError } from "../base/host/root-directory.ts";
import { SystemClock } from "../base/host/system-clock.ts";
import type { Clock } from "../base/model/clock.ts";
import { type DesiredObject, isWorkload, objectKey } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import { type PodFullName, type PodUID, podFullName } from "../base/model/pod.ts";
import { isRunning } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { IpFamily } from "../base/text/ip-range.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { EnginePod } from "../docker/docker-host.ts";
import { computeRootHash } from "../docker/labels.ts";
import { PodEventRecorder } from "../kubelet/event-recorder.ts";
import { chainPrefix, KernelRules } from "../kubelet/kernel-rules.ts";
import { PodManager } from "../kubelet/pod-records.ts";
import type { PodServices } from "../kubelet/pod-runtime-manager.ts";
import { parseRanges } from "../plan/service-addresses.ts";
import { SANDBOX_GRACE_SECONDS } from "../plan/stop-pod.ts";
import { CheckpointStore } from "../sources/checkpoint-store.ts";
import { withoutRunnables } from "../sources/desired-state-feed.ts";
import { buildPodServices } from "./assembly/build-pod-services.ts";
import { readNodeContext } from "./assembly/node-context.ts";
import { openStateFile } from "./assembly/state-files.ts";
import { instanceInfo } from "./instance-info.ts";
import type { Environment } from "./kubelet-run.ts";

interface RemovePodsInput {
  /** Options of a kubelet on that root directory: paths, engine, cgroups. */
  options: KubeletOptions;
  environment: Environment;
  logger: Logger;
  /** Picks the pods to remove. */
  choose: (pods: readonly EnginePod[]) => readonly EnginePod[];
  /** In place of the pods' own grace periods; 0 kills at once. Unit: seconds. */
  graceSeconds?: number;
  /** Also removes what earlier runs left below the root directory for pods that have no container any more. */
  removeLeftovers: boolean;
  /** Workloads that leave the checkpoints with their pods. */
  isForgotten?: (workload: DesiredObject) => boolean;
  /** Called when the stop of a pod begins and when the pod is removed. */
  onProgress: (pod: EnginePod, step: "stopping" | "removed") => void;
  signal: AbortSignal;
}

/**
 * Removes pods while no kubelet runs on the root directory: preStop hooks and grace periods as in the kubelet, then
 * containers, sandboxes, volumes, cgroups and log links; with the last pod the rules of Services. Nothing without the
 * labels of this root directory is touched.
 * @returns what is not removed, and why, a sentence each; every other chosen pod is removed
 * @throws RootDirectoryError, and errors of the engine when it cannot be asked at all
 */
export async function removePods(input: RemovePodsInput): Promise<string[]> {
  const { options, environment, signal } = input;
  const isNew = !existsSync(options.rootDir);
  prepareRootDirectory(options.rootDir);
  const lock = await lockRootDir(options.rootDir);
  if (!lock) throw new RootDirectoryError(`another kubelet-ts uses the root directory "${options.rootDir}"`);
  try {
    lock.publish(instanceInfo({ ...options, runOnce: true }, environment, undefined));
    const first = await servicesOf(input, options.hostnameOverride);
    const all = [first];
    const pods = await first.engine.listPods(computeRootHash(options.rootDir), signal);
    const chosen = input.choose(pods);
    const failures: string[] = [];
    const nodeNames = chosen.map(({ owner }) => owner.nodeName);
    if (input.removeLeftovers) nodeNames.push(first.nodeName);
    for (const nodeName of new Set(nodeNames)) {
      const own = await servicesOf(input, nodeName);
      all.push(own);
      const removed = new Map<PodUID, PodFullName>();
      await Promise.all(
        chosen
          .filter(({ owner }) => owner.nodeName === nodeName)
          .map(async (pod) => {
            try {
              await removePod(pod, own.services, input);
              removed.set(pod.snapshot.uid, podFullName(pod.snapshot));
            } catch (error) {
              signal.throwIfAborted();
              failures.push(`pod "${pod.snapshot.name}" is not removed: ${messageOf(error)}`);
            }
          }),
      );
      await dropFromCheckpoints(input, nodeName, new Set(removed.values()));
      const rest = pods.filter(({ snapshot }) => !removed.has(snapshot.uid)).map(({ snapshot }) => snapshot.uid);
      await own.markRemoved((uid) => removed.has(uid) || (input.removeLeftovers && !rest.includes(uid)));
    }
    if (input.removeLeftovers) {
      const kept = new Set(pods.filter((pod) => !chosen.includes(pod)).map(({ snapshot }) => snapshot.uid));
      for (const uid of (await first.listPodDirs()).filter((uid) => !kept.has(uid))) {
        await first.services.tearDown(uid, { name: "", namespace: "" }, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          failures.push(`pod "${uid}" is not removed: ${messageOf(error)}`);
        });
      }
    }
    if (input.removeLeftovers && chosen.length === pods.length) {
      for (const family of ["IPv4", "IPv6"] as const) {
        await removeServiceRules(input, first.clock, family).catch((error: unknown) => {
          // Where no Service ever had an address, there are no rules.
          if (!first.hadAddresses(family)) return;
          failures.push(`the rules of Services for ${family} are not removed: ${messageOf(error)}`);
        });
      }
    }
    for (const { settled } of all) await settled();
    return failures;
  } finally {
    // It was there for the lock alone.
    if (isNew) rmSync(options.rootDir, { recursive: true });
    lock.release();
  }
}

/** No pod is left that the Services of this root directory could lead to. */
async function removeServiceRules({ options, logger }: RemovePodsInput, clock: Clock, family: IpFamily): Promise<void> {
  const { rootDir } = options;
  const prefix = chainPrefix(computeRootHash(rootDir));
  const rules = new KernelRules({ family, clock, logger, prefix, rootDir, nodePortAddresses: [], sandboxes: () => [] });
  await rules.remove();
}

/** A kubelet that starts later would run the pods of its checkpoints again. */
async function dropFromCheckpoints(
  { options, logger, isForgotten = () => false }: RemovePodsInput,
  nodeName: string,
  removed: ReadonlySet<PodFullName>,
): Promise<void> {
  const dir = join(options.rootDir, "checkpoints");
  const store = new CheckpointStore({ dir, nodeName, clock: new SystemClock(), logger, replaceFile });
  for (const { id, name, checkpoint } of store.loadOthers(new Set())) {
    const objects = [...checkpoint.texts.values()].flatMap((text) => text.objects ?? []);
    const workloads = objects.filter((it) => isWorkload(it) && isForgotten(it));
    const keys = new Set([...removed, ...workloads.map(({ kind, object }) => objectKey(kind, object.metadata))]);
    if (keys.size > 0) store.save(id, name, { ...checkpoint, texts: withoutRunnables(checkpoint.texts, keys) });
  }
  await store.flush();
}

/** The steps of a pod's life on this node. */
async function servicesOf({ options, environment, logger, signal }: RemovePodsInput, nodeName: string) {
  const clock = new SystemClock();
  const recorder = new PodEventRecorder({ clock, logger, nodeName, rate: { perSecond: 0, burst: 0 } });
  const context = await readNodeContext({
    options: { ...options, hostnameOverride: nodeName },
    environment,
    clock,
    logger,
    recorder,
  });
  const parts = await buildPodServices(context, { podManager: new PodManager() });
  await parts.engine.connect(signal);
  const records = openStateFile(context, "pods");
  return {
    clock,
    nodeName: context.owner.nodeName,
    /** Nothing of these pods is left for the next kubelet to look for. */
    markRemoved: async (isGone: (uid: PodUID) => boolean) => {
      const all = records.read() ?? [];
      if (all.some(({ uid, isRemoved }) => !isRemoved && isGone(uid)))
        await records.write(all.map((pod) => (isGone(pod.uid) ? { ...pod, isRemoved: true } : pod)));
    },
    services: parts.services,
    hadAddresses: (family: IpFamily) =>
      parseRanges(openStateFile(context, "service-addresses").read()?.range ?? "").some((it) => it.family === family),
    engine: parts.engine,
    listPodDirs: () => parts.volumes.listPodDirs(),
    settled: () => context.background.settled(),
  };
}

/** All containers stop together; without a manifest sidecars cannot be recognized, as for an orphan of the kubelet. */
async function removePod(pod: EnginePod, services: PodServices, input: RemovePodsInput): Promise<void> {
  const { signal, onProgress } = input;
  const { containers, sandboxes, uid, name, namespace } = pod.snapshot;
  const graceSeconds = input.graceSeconds ?? pod.graceSeconds;
  onProgress(pod, "stopping");
  const podIps = sandboxes[0]?.ips ?? [];
  await Promise.all(
    containers
      .filter(isRunning)
      .map((container) => services.killContainer({ container, podIps, graceSeconds }, signal)),
  );
  const upright = sandboxes.filter(({ state }) => state === "ready");
  await Promise.all(upright.map(({ id }) => services.stopSandbox(id, SANDBOX_GRACE_SECONDS, signal)));
  await Promise.all(containers.map((container) => services.removeContainer(container, signal)));
  await Promise.all(sandboxes.map(({ id }) => services.removeSandbox(id, uid, signal)));
  await services.tearDown(uid, { name, namespace }, signal);
  onProgress(pod, "removed");
}
