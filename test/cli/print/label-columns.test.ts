import { describe, expect, test } from "bun:test";
import { labelHeaders, toLabelColumns, withLabelCells } from "../../../src/cli/print/label-columns.ts";
import { ResourcePrinter } from "../../../src/cli/print/resource-printer.ts";
import { changesBetween, type ResourceItem, toPodItem } from "../../../src/cli/print/resource-view.ts";
import { NOW, shown } from "./pods.ts";

const item = (labels: Record<string, string>): ResourceItem => ({ ...toPodItem(shown({ ready: true })), labels });

describe("columns of labels", () => {
  test.each([
    { when: "none", keys: undefined, all: false, headers: [], cells: [] },
    { when: "all", keys: undefined, all: true, headers: ["LABELS"], cells: ["app=web,example.com/tier=x"] },
    { when: "some", keys: "example.com/tier,none", all: false, headers: ["TIER", "NONE"], cells: ["x", ""] },
    { when: "both", keys: "app", all: true, headers: ["APP", "LABELS"], cells: ["web", "app=web,example.com/tier=x"] },
  ])("$when", ({ keys, all, headers, cells }) => {
    const columns = toLabelColumns(keys, all);
    expect(labelHeaders(columns)).toEqual([...headers]);
    const web = item({ "example.com/tier": "x", app: "web" });
    expect(withLabelCells(web, columns).row(NOW, false).slice(5)).toEqual([...cells]);
  });

  test("in a table, also of a pod without any", () => {
    const columns = toLabelColumns(undefined, true);
    const options = { resource: "pods", format: "table", headers: true, namespaceColumn: false } as const;
    const printer = new ResourcePrinter({ ...options, labelHeaders: labelHeaders(columns), toYaml: String });
    expect(printer.print([withLabelCells(item({}), columns)], false, NOW)).toBe(
      "NAME        READY   STATUS    RESTARTS   AGE     LABELS\nweb-node1   1/1     Running   0          5m32s   <none>\n",
    );
  });

  test("a watcher sees another value", () => {
    const columns = toLabelColumns("app", false);
    const [before, after] = [item({ app: "a" }), item({ app: "b" })].map((one) => withLabelCells(one, columns));
    expect(changesBetween([before!], [after!], "table").changed).toHaveLength(1);
  });
});
