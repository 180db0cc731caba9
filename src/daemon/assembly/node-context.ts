import { join } from "node:path";
import * as v from "valibot";
import { LoopLagMonitor } from "../../base/concurrency/loop-lag-monitor.ts";
import { readNodeInfo, readNodeName } from "../../base/host/node-info.ts";
import { StateFile } from "../../base/host/state-file.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Owner } from "../../base/model/container-engine.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { NodeInfo } from "../../base/model/node.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { computeRootHash } from "../../docker/labels.ts";
import type { PodEventRecorder } from "../../kubelet/event-recorder.ts";
import type { NodeAllocatable } from "../../plan/downward-api.ts";
import { computeAllocatableDisk, computeNodeAllocatable } from "../../plan/node-allocatable.ts";
import { readCapacity } from "../../stats/disk-usage.ts";
import { BackgroundThreads } from "../background/background-threads.ts";
import { MetricsRecorder } from "../metrics-recorder.ts";

export interface NodeContextInput {
  options: KubeletOptions;
  /** As the process was started with it. */
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  logger: Logger;
  recorder: PodEventRecorder;
}

/** The dependencies of every subsystem. */
export interface NodeContext extends NodeContextInput {
  node: NodeInfo;
  owner: Owner;
  allocatable: NodeAllocatable;
  metrics: MetricsRecorder;
  loopLag: LoopLagMonitor;
  background: BackgroundThreads;
}

/** Reads the facts of this machine; does not talk to the engine. */
export async function readNodeContext(input: NodeContextInput): Promise<NodeContext> {
  const { options, clock } = input;
  const name = readNodeName(options.hostnameOverride);
  const node = readNodeInfo(name, options.nodeIp);
  const background = new BackgroundThreads(clock);
  const disk = await readCapacity(options.rootDir, background.slot);
  return {
    ...input,
    node,
    owner: { nodeName: name, rootHash: computeRootHash(options.rootDir) },
    allocatable: {
      ...computeNodeAllocatable(node, options),
      ephemeralStorageBytes: disk ? computeAllocatableDisk(disk.capacityBytes, options) : 0,
    },
    metrics: new MetricsRecorder(name, clock),
    loopLag: new LoopLagMonitor(clock),
    background,
  };
}

/**
 * `<root-dir>/state/<name>-<node>.json`.
 * @param durable survives a power cut right after a write
 */
export function openStateFile<T>(
  { options, node, clock, logger, background }: NodeContext,
  name: string,
  schema: v.GenericSchema<unknown, T>,
  { durable } = { durable: false },
): StateFile<T> {
  const path = join(options.rootDir, "state", `${name}-${node.name}.json`);
  const parse = (data: unknown) => v.parse(schema, data);
  const replace = background.tasks.replaceFile;
  return new StateFile(path, { version: 1, durable, parse }, clock, (message) => logger.warn(message), replace);
}
