import type { PodEvent } from "../base/model/pod-event.ts";
import { keyedValue } from "./cgroups/cgroup-figures.ts";
import type { CgroupDirectories } from "./cgroups/cgroup-layout.ts";
import { readText } from "./cgroups/kernel-files.ts";
import type { PodFacts } from "./pod-facts.ts";

/** A process the kernel killed because memory ran out. */
interface OomKill {
  pid: number;
  /** At most 15 characters, as the kernel keeps it. */
  processName: string;
  /** Cgroup the process was in; "" when the kernel did not say. */
  victimCgroup: string;
  /** Cgroup whose limit was hit; `/` when the machine itself ran out, "" when the kernel did not say. */
  limitCgroup: string;
}

type Context = Pick<OomKill, "victimCgroup" | "limitCgroup"> & { pid: number | undefined };

/** Puts together the messages of one kill. Knows the messages of Linux 3.10 to 6.18. Feed it every message of the kernel's log in order. */
export class OomKillParser {
  #context: Context | undefined;

  feed(message: string): OomKill | undefined {
    this.#context = parseContext(message) ?? this.#context;
    const killed = KILLED.exec(message);
    if (!killed) return undefined;
    const pid = Number(killed[2]);
    const context = this.#context;
    this.#context = context && { ...context, pid: undefined };
    // Siblings that die with it (memory.oom.group) have no context of their own; another kill's does not fit.
    const fits = context && (context.pid === undefined || context.pid === pid);
    const isGlobal = killed[1] === "Out of memory";
    return {
      pid,
      processName: killed[3]!,
      victimCgroup: fits ? context.victimCgroup : "",
      limitCgroup: fits ? context.limitCgroup : isGlobal ? "/" : "",
    };
  }
}

/** Linux 3.10 of some distributions names the user before or after the process. */
const KILLED =
  /^(?:(Out of memory|Memory cgroup out of memory)(?: \([^)]*\))?: )?Killed process (\d+)(?:, UID \d+,)? \((.*)\)(?:, UID \d+,)? total-vm/;

function parseContext(message: string): Context | undefined {
  if (message.startsWith("oom-kill:")) {
    // Since Linux 5.0. Values hold no commas but in lists of nodes, which come before these.
    const field = (name: string) => new RegExp(`[:,]${name}=([^,]*)`).exec(message)?.[1];
    const victimCgroup = field("task_memcg") ?? "";
    const isGlobal = message.includes(",global_oom") || field("constraint") === "CONSTRAINT_NONE";
    const pid = field("pid");
    return {
      victimCgroup,
      limitCgroup: field("oom_memcg") ?? (isGlobal ? "/" : ""),
      pid: pid === undefined ? undefined : Number(pid),
    };
  }
  const old = /^Task in (\S+) killed as a result of limit of (\S+)/.exec(message);
  return old ? { victimCgroup: old[1]!, limitCgroup: old[2]!, pid: undefined } : undefined;
}

/** An OOM kill and the container that it hit. */
interface OomEvent {
  /** The container; undefined for the node, or a process of another program. */
  pod: Pick<PodFacts, "uid" | "name" | "namespace"> | undefined;
  container: string | undefined;
  event: PodEvent;
}

/** The event of a pod when its container, or the pod as a whole, hit its limit; of the node when the machine ran out (`SystemOOM`). */
export function toOomEvent(kill: OomKill, pods: readonly PodFacts[]): OomEvent | undefined {
  const { pid, processName, victimCgroup, limitCgroup } = kill;
  const owner = findOwner(victimCgroup, pods);
  if (limitCgroup === "/" || (limitCgroup === "" && !owner)) {
    const message = `System OOM encountered, victim process: ${processName}, pid: ${pid}`;
    return { pod: owner?.pod, container: owner?.container, event: { type: "Warning", reason: "SystemOOM", message } };
  }
  if (!owner) return undefined;
  const whose = limitCgroup === victimCgroup ? "its memory limit" : "the memory limit of the pod";
  const message = `Process ${processName} (pid ${pid}) in container "${owner.container}" was killed by the kernel: ${whose} was reached`;
  const fieldPath = `spec.containers{${owner.container}}`;
  return { ...owner, event: { type: "Warning", reason: "OOMKilling", message, fieldPath } };
}

/** The event of kills that are known from a counter only: neither the processes nor the limit are known. */
export function toCountedOomEvent(container: string, kills: number): PodEvent {
  const who = kills === 1 ? "A process" : `${kills} processes`;
  const message = `${who} in container "${container}" ${kills === 1 ? "was" : "were"} killed by the kernel: its memory limit, or that of its pod, was reached`;
  return { type: "Warning", reason: "OOMKilling", message, fieldPath: `spec.containers{${container}}` };
}

/** How many processes of a cgroup the kernel ever killed; undefined where it is gone, or counts none (before Linux 4.13). */
export function readOomKills({ memory }: CgroupDirectories): number | undefined {
  if (!memory) return undefined;
  return keyedValue(
    readText(`${memory.path}/${memory.version === 1 ? "memory.oom_control" : "memory.events"}`),
    "oom_kill",
  );
}

/** Id of the engine's container that a cgroup belongs to. */
export const toContainerId = (cgroup: string): string | undefined => /[0-9a-f]{64}/.exec(cgroup)?.[0];

function findOwner(cgroup: string, pods: readonly PodFacts[]) {
  const id = toContainerId(cgroup);
  if (!id) return undefined;
  for (const pod of pods) {
    const container = [...pod.containers, pod.sandbox].find((candidate) => candidate.id === id);
    if (container) return { pod, container: container.name };
  }
  return undefined;
}
