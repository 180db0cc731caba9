import type { Configuration, ConfigurationStatus } from "../base/model/configuration.ts";
import { type MetricFamily, MetricsRegistry } from "../stats/metrics/metrics-registry.ts";

const LABELS = [
  "node_config_source",
  "node_config_uid",
  "node_config_resource_version",
  "node_config_kubelet_key",
] as const;

/** The upstream kubelet's families that name its configurations. @param status undefined without configuration files */
export function configurationFamilies(status: ConfigurationStatus | undefined): MetricFamily[] {
  const registry = new MetricsRegistry();
  const add = (name: string, help: string, configuration: Configuration | undefined) => {
    const family = registry.gauge(name, `[ALPHA] ${help} The count is always 1.`, [...LABELS]);
    if (!configuration) return;
    const { id, files } = configuration;
    family.set(1, ["local", id, id, files.map(({ path }) => path).join(",")]);
  };
  add("kubelet_node_config_assigned", "The node's understanding of intended config.", status?.assigned);
  add("kubelet_node_config_active", "The config source the node is actively using.", status?.active);
  add(
    "kubelet_node_config_last_known_good",
    "The config source the node will fall back to when it encounters certain errors.",
    status?.lastKnownGood,
  );
  return registry.collect();
}
