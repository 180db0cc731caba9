import { describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { type PrinterOptions, ResourcePrinter, toTable } from "../../../src/cli/print/resource-printer.ts";
import { ago, ended, has, NOW, running, shown, waiting } from "./pods.ts";

const { columns } = toTable("pods", [], NOW);
const itemOf = (pod: Pod) => toTable("pods", [pod], NOW).items[0]!;
const WEB = itemOf(shown({ ready: true }));
const DB = itemOf(shown({ name: "db-node1", namespace: "prod", ready: true }));

const printer = (over: Partial<PrinterOptions> = {}) =>
  new ResourcePrinter({
    columns,
    format: "table",
    headers: true,
    namespaceColumn: undefined,
    toYaml: (value) => `yaml of ${(value as { kind: string }).kind}\n`,
    ...over,
  });

describe("tables", () => {
  test("a column has the namespace once there is another one, with the header again", () => {
    const it = printer();
    it.print([WEB], false);
    expect(it.lines([DB])).toBe(
      "NAMESPACE   NAME       READY   STATUS    RESTARTS   AGE\nprod        db-node1   1/1     Running   0          5m32s\n",
    );
    expect(it.lines([WEB])).toStartWith("default     web-node1");
  });

  test("a node under pressure", () => {
    const node = {
      kind: "Node",
      apiVersion: "v1",
      metadata: { name: "node1", creationTimestamp: null, labels: { "node-role.kubernetes.io/edge": "" } },
      spec: { unschedulable: true },
      status: {
        conditions: [
          { type: "DiskPressure", status: "True" },
          { type: "MemoryPressure", status: "False" },
          { type: "Ready", status: "True" },
        ],
        nodeInfo: {
          kubeletVersion: "v0.1.0",
          osImage: "Debian",
          kernelVersion: "6.1",
          containerRuntimeVersion: "docker://20",
        },
      },
    };
    expect(toTable("nodes", [node], NOW).items[0]!.cells).toEqual([
      "node1",
      "Ready,DiskPressure,SchedulingDisabled",
      "edge",
      "<unknown>",
      "v0.1.0",
      "<none>",
      "<none>",
      "Debian",
      "6.1",
      "docker://20",
    ]);
  });
});

describe("other formats", () => {
  test("a single named object is not a list", () => {
    expect(JSON.parse(printer({ format: "json" }).print([WEB], true))).toMatchObject({ apiVersion: "v1", kind: "Pod" });
    const list = JSON.parse(printer({ format: "json" }).print([WEB], false)) as { items: object[] };
    expect(list).toMatchObject({ apiVersion: "v1", kind: "List" });
    expect(list.items).toMatchObject([{ kind: "Pod", metadata: { name: "web-node1" } }]);
    expect(JSON.parse(printer({ format: "json" }).print([], false))).toMatchObject({ kind: "List", items: [] });
  });

  test("each change is a document", () => {
    expect(printer({ format: "yaml" }).lines([WEB, DB])).toBe("---\nyaml of Pod\n---\nyaml of Pod\n");
  });
});

describe("changes of a watch", () => {
  const seen = (...args: Parameters<typeof shown>) => itemOf(shown(...args));
  const crashed = (restartCount: number, finishedAt: string) =>
    seen({
      mains: [has("app", waiting("CrashLoopBackOff"), { restartCount, lastState: ended("Error", 1, { finishedAt }) })],
    });

  test.each([
    ["nothing", "table", seen(), seen(), 0],
    ["a status", "table", seen(), seen({ mains: [has("app", ended("Error", 1))] }), 1],
    ["a restart", "table", crashed(1, ago(5)), crashed(2, ago(5)), 1],
    ["only the time since the last restart", "table", crashed(1, ago(50)), crashed(1, ago(5)), 0],
    ["an address, which the table does not show", "table", seen({ status: { podIP: "" } }), seen(), 0],
    ["an address, which the wide one shows", "wide", seen({ status: { podIP: "" } }), seen(), 1],
    ["an address, in JSON", "json", seen({ status: { podIP: "" } }), seen(), 1],
    ["a status, where only names are shown", "name", seen(), seen({ mains: [has("app", ended("Error", 1))] }), 0],
  ] as const)("%s changes in %s", (_, format, before, after, count) => {
    expect(printer({ format, headers: false }).changes([before], [after]) === "").toBe(count === 0);
  });

  const changes = (before: object[], after: object[]) => printer({ headers: false }).changes(before as [], after as []);

  test("a pod of the same name with another UID is another pod", () => {
    const next = itemOf(shown({ ready: true, metadata: { uid: "another" }, mains: [has("app", running)] }));
    expect(changes([WEB], [next]).split("\n")).toEqual([
      expect.stringMatching(/^web-node1 .*Running/),
      expect.stringMatching(/^web-node1 .*Deleted/),
      "",
    ]);
  });
});
