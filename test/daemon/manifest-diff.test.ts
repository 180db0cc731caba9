import { describe, expect, test } from "bun:test";
import { describeObjectEffects, describePodEffects, diffLines, shownObjects } from "../../src/daemon/manifest-diff.ts";
import type { PodRevision } from "../../src/kubelet/edit-rules.ts";
import type { PlainObject } from "../../src/manifest/plain-objects.ts";
import { aContainer, aPod, aRunning, aSandbox, aSnapshot } from "../support/builders.ts";

const deployment = (replicas: number, image: string): PlainObject => ({
  kind: "Deployment",
  metadata: { name: "web" },
  spec: { replicas, template: { spec: { containers: [{ name: "a", image }] } } },
});

test.each([
  [undefined, deployment(2, "a"), ["starts 2 pods"]],
  [deployment(2, "a"), deployment(2, "a"), []],
  [deployment(2, "a"), deployment(3, "a"), ["starts 1 pod"]],
  [deployment(3, "a"), deployment(1, "b"), ["replaces its pods by new ones", "stops 2 pods"]],
  [undefined, { kind: "ConfigMap", metadata: { name: "c" }, data: {} }, []],
])("%#", (before, after, want) => expect(describeObjectEffects(before, after)).toEqual(want));

test("values of Secrets are hidden, those that differ are distinguished", () => {
  const secret = (data: Record<string, string>): PlainObject => ({ kind: "Secret", metadata: { name: "s" }, data });
  const [before, after] = shownObjects(secret({ a: "MQ==", b: "Mg==" }), secret({ a: "MQ==", b: "Mw==", c: "NA==" }));
  expect(before).toMatchObject({ data: { a: "***", b: "*** (before)" } });
  expect(after).toMatchObject({ data: { a: "***", b: "*** (after)", c: "*** (after)" } });
});

test("lines that differ, with three lines around them", () => {
  const before = Array.from({ length: 12 }, (_, line) => `line ${line}`);
  const after = before.with(1, "changed").concat("added");
  expect(diffLines(before.join("\n"), after.join("\n"))).toEqual([
    "  line 0",
    "- line 1",
    "+ changed",
    "  line 2",
    "  line 3",
    "  line 4",
    "…",
    "  line 9",
    "  line 10",
    "  line 11",
    "+ added",
  ]);
});

test("equal texts have no difference", () => expect(diffLines("a\nb", "a\nb")).toEqual([]));
describe("what an edit restarts", () => {
  const pod = aPod({ containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] });
  const revision = (sandbox: string, containers: [string, string][]) =>
    ({ pod, qosClass: "BestEffort", hashes: { sandbox, containers: new Map(containers) } }) as unknown as PodRevision;
  const running = aSnapshot(
    [aRunning("a", { hash: "1" }), aRunning("b", { hash: "2" }), aRunning("old", { hash: "3" })],
    [aSandbox({ hash: "s" })],
  );

  test("a container whose hash differs restarts, one that is gone stops", () => {
    expect(
      describePodEffects(
        revision("s", [
          ["a", "1"],
          ["b", "9"],
        ]),
        running,
        pod,
      ),
    ).toEqual(["container a keeps running", "container b restarts", "container old stops"]);
  });

  test("another sandbox restarts the pod", () => {
    expect(describePodEffects(revision("t", []), running, pod)).toEqual([
      "the whole pod restarts, with a new sandbox and IP address",
    ]);
  });

  test("another QoS class is named, as the reason why the whole pod restarts", () => {
    const limits = { cpu: "1", memory: "64Mi" };
    const before = aPod({ containers: [aContainer({ name: "a", resources: { limits, requests: limits } })] });
    expect(describePodEffects(revision("t", []), running, before)).toEqual([
      "QoS class changes from Guaranteed to BestEffort: every container restarts, the IP address may change",
    ]);
    expect(describePodEffects(revision("s", [["a", "1"]]), running, before)).not.toContain("QoS");
  });

  test("a pod that does not run starts", () => {
    expect(describePodEffects(revision("s", []), undefined, undefined)).toEqual(["the pod starts"]);
  });
});

test("a change beyond what can be compared line by line is reported without its lines", () => {
  const lines = (prefix: string) => Array.from({ length: 3000 }, (_, line) => `${prefix} ${line}`).join("\n");
  expect(diffLines(`same\n${lines("a")}`, `same\n${lines("b")}`)).toEqual(["… 3001 lines become 3001 lines"]);
  expect(diffLines(`${lines("a")}\n1`, `${lines("a")}\n2`)).toHaveLength(5);
});
