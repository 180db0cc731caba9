import { expect, test } from "bun:test";
import { configurationFamilies } from "../../src/daemon/configuration-metrics.ts";
import { renderFamilies } from "../../src/stats/metrics/prometheus-text.ts";

const linesOf = (...[status]: Parameters<typeof configurationFamilies>) =>
  renderFamilies(configurationFamilies(status), "prometheus")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

test("each configuration is named by its files and their hash", () => {
  const files = [{ path: "/etc/c.yaml", text: "" }];
  const status = { assigned: { id: "b", files }, active: { id: "a", files }, lastKnownGood: undefined, error: "no" };
  const source = (id: string) =>
    `{node_config_source="local",node_config_uid="${id}",node_config_resource_version="${id}",node_config_kubelet_key="/etc/c.yaml"} 1`;
  expect(linesOf(status)).toEqual([
    `kubelet_node_config_active${source("a")}`,
    `kubelet_node_config_assigned${source("b")}`,
  ]);
});

test("without configuration files there is none", () => {
  expect(linesOf(undefined)).toEqual([]);
});
