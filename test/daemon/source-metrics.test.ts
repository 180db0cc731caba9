import { expect, test } from "bun:test";
import { sourceFamilies } from "../../src/daemon/source-metrics.ts";

test("each source has its state, its pods and its counts", () => {
  const families = sourceFamilies([
    { kind: "file", name: "/m", state: "ok", pods: 3, reads: 7, failures: 1, lastSuccess: new Date(5_000) },
    { kind: "http", name: "http://***@h/", state: "restored", message: "no", pods: 2, reads: 4, failures: 4 },
  ]);
  const shown = Object.fromEntries(families.map(({ name, samples }) => [name, [...samples]]));
  expect(shown).toEqual({
    kubelet_ts_source_up: [
      { labelValues: ["file", "/m"], value: 1 },
      { labelValues: ["http", "http://***@h/"], value: 0 },
    ],
    kubelet_ts_source_pods: [
      { labelValues: ["file", "/m"], value: 3 },
      { labelValues: ["http", "http://***@h/"], value: 2 },
    ],
    kubelet_ts_source_last_success_timestamp_seconds: [{ labelValues: ["file", "/m"], value: 5 }],
    kubelet_ts_source_reads_total: [
      { labelValues: ["file", "/m"], value: 7 },
      { labelValues: ["http", "http://***@h/"], value: 4 },
    ],
    kubelet_ts_source_failures_total: [
      { labelValues: ["file", "/m"], value: 1 },
      { labelValues: ["http", "http://***@h/"], value: 4 },
    ],
    kubelet_ts_manifests_rejected: [],
  });
});

test("errors are counted by file", () => {
  const finding = (file: string, line: number) =>
    ({ code: "syntax", severity: "error", file, document: 1, line, column: 1, field: "", message: "no" }) as const;
  const rejections = [finding("/m/a.yaml", 1), finding("/m/a.yaml", 7), finding("/m/b.yaml", 1)].map((found) => ({
    source: "/m",
    kind: "file" as const,
    finding: found,
    stalePods: [],
  }));
  const family = sourceFamilies([], rejections).find(({ name }) => name === "kubelet_ts_manifests_rejected")!;
  expect([...family.samples]).toEqual([
    { labelValues: ["/m", "/m/a.yaml"], value: 2 },
    { labelValues: ["/m", "/m/b.yaml"], value: 1 },
  ]);
});
