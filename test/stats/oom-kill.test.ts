import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CgroupReader } from "../../src/stats/cgroups/cgroup-reader.ts";
import { OomKillParser, readOomKills, toOomEvent } from "../../src/stats/oom-kill.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { CONTAINER_ID, CONTAINER_PATHS, layTree, podOf } from "./lay-tree.ts";

const makeDirectory = tempDirs();

const POD = "/kubepods/burstable/pod6f1c0d2e8a4b4c1d9e7f0a1b2c3d4e5f";
const VICTIM = `${POD}/${CONTAINER_ID}`;

/** Kills found in these messages. */
function kills(...messages: string[]) {
  const parser = new OomKillParser();
  return messages.map((message) => parser.feed(message)).filter((kill) => kill !== undefined);
}

const NEW_CONTEXT = (limit: string, pid = 30236) =>
  `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${CONTAINER_ID},mems_allowed=0-1,oom_memcg=${limit},task_memcg=${VICTIM},task=tail,pid=${pid},uid=0`;
const NEW_KILL = (pid = 30236, name = "tail") =>
  `Memory cgroup out of memory: Killed process ${pid} (${name}) total-vm:60872kB, anon-rss:15616kB, file-rss:1392kB, shmem-rss:0kB, UID:0 pgtables:72kB oom_score_adj:0`;

const GLOBAL = `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=${VICTIM},task=java,pid=5,uid=1000`;
const GLOBAL_KILL =
  "Out of memory: Killed process 5 (java) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:1kB oom_score_adj:0";

test.each<[when: string, messages: string[], want: [pid: number, name: string, victim: string, limit: string][]]>([
  [
    "Linux 5 and 6: a container at its limit",
    [
      "tail invoked oom-killer: gfp_mask=0xcc0",
      "memory: usage 16384kB, limit 16384kB, failcnt 11",
      "Tasks state (memory values in pages):",
      NEW_CONTEXT(VICTIM),
      NEW_KILL(),
      "docker0: port 76(veth) entered disabled state",
    ],
    [[30236, "tail", VICTIM, VICTIM]],
  ],
  [
    "Linux 4: other words for the same",
    [
      `Task in ${VICTIM} killed as a result of limit of ${POD}`,
      "Memory cgroup out of memory: Kill process 77 (a (b) c) score 1991 or sacrifice child",
      "Killed process 77 (a (b) c) total-vm:60872kB, anon-rss:15616kB, file-rss:1392kB, shmem-rss:0kB",
    ],
    [[77, "a (b) c", VICTIM, POD]],
  ],
  [
    "Linux 3.10: with a user before or behind the name",
    ["Killed process 77, UID 0, (x) total-vm:1kB", "Killed process 78 (y), UID 0, total-vm:1kB"],
    [
      [77, "x", "", ""],
      [78, "y", "", ""],
    ],
  ],
  ["the machine itself ran out", [GLOBAL, GLOBAL_KILL], [[5, "java", VICTIM, "/"]]],
  ["the machine ran out, without a context", [GLOBAL_KILL], [[5, "java", "", "/"]]],
  [
    "siblings that die with the victim (memory.oom.group)",
    [
      NEW_CONTEXT(VICTIM, 5),
      NEW_KILL(5),
      `Tasks in ${VICTIM} are going to be killed due to memory.oom.group set`,
      NEW_KILL(6, "sh"),
    ],
    [
      [5, "tail", VICTIM, VICTIM],
      [6, "sh", VICTIM, VICTIM],
    ],
  ],
  ["the context of another kill is not this one's", [NEW_CONTEXT(VICTIM, 5), NEW_KILL(6)], [[6, "tail", "", ""]]],
  [
    "most messages mean nothing",
    ["", "Linux version 6.18", "process killed", "oom_reaper: reaped process 5 (tail), now anon-rss:0kB"],
    [],
  ],
])("%s", (_, messages, want) => {
  const found = kills(...messages).map((kill) => [kill.pid, kill.processName, kill.victimCgroup, kill.limitCgroup]);
  expect(found).toEqual(want);
});

describe("the event of a kill", () => {
  const pods = [podOf("cgroup-v1")];
  const kill = { pid: 5, processName: "tail", victimCgroup: VICTIM, limitCgroup: VICTIM };

  test("a container reached its limit", () => {
    expect(toOomEvent(kill, pods)).toMatchObject({
      pod: { name: "web-node1" },
      container: "app",
      event: {
        type: "Warning",
        reason: "OOMKilling",
        message: 'Process tail (pid 5) in container "app" was killed by the kernel: its memory limit was reached',
        fieldPath: "spec.containers{app}",
      },
    });
  });

  test("a pod reached its limit", () => {
    expect(toOomEvent({ ...kill, limitCgroup: POD }, pods)?.event.message).toEndWith(
      "the memory limit of the pod was reached",
    );
  });

  test("systemd's names of cgroups", () => {
    const victimCgroup = `/kubepods.slice/kubepods-burstable.slice/docker-${CONTAINER_ID}.scope`;
    expect(toOomEvent({ ...kill, victimCgroup, limitCgroup: victimCgroup }, pods)?.container).toBe("app");
  });

  test("the machine ran out: upstream's event of the node, whichever process was the victim", () => {
    const event = {
      type: "Warning",
      reason: "SystemOOM",
      message: "System OOM encountered, victim process: tail, pid: 5",
    } as const;
    expect(toOomEvent({ ...kill, limitCgroup: "/" }, pods)).toMatchObject({ container: "app", event });
    expect(toOomEvent({ ...kill, victimCgroup: "/system.slice", limitCgroup: "/" }, pods)).toEqual({
      pod: undefined,
      container: undefined,
      event,
    });
  });

  test("foreign containers are not reported", () => {
    const other = `/docker/${"a".repeat(64)}`;
    expect(toOomEvent({ ...kill, victimCgroup: other, limitCgroup: other }, pods)).toBeUndefined();
  });
});

describe.each(["cgroup-v1", "cgroup-v2"] as const)("the counters of %s", (name) => {
  const tree = layTree(name, makeDirectory());
  const reader = new CgroupReader(tree.roots.proc);
  const directories = reader.ofPath(CONTAINER_PATHS[name]);
  const file = join(directories.memory!.path, name === "cgroup-v1" ? "memory.oom_control" : "memory.events");

  test("count the killed processes of a container", () => {
    writeFileSync(file, readFileSync(file, "utf8").replace(/^oom_kill \d+/m, "oom_kill 3"));
    expect(readOomKills(directories)).toBe(3);
  });

  test("may lack that line, and go with their cgroup", () => {
    writeFileSync(file, "under_oom 0\n");
    expect(readOomKills(directories)).toBeUndefined();
    rmSync(file);
    expect(readOomKills(directories)).toBeUndefined();
  });
});
