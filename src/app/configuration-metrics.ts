import { type MetricFamily, MetricsRegistry } from "../metrics/metrics-registry.ts";
import type { Configuration, ConfigurationStatus } from "../model/configuration.ts";

const LABELS = [
  "node_config_source",
  "node_config_uid",
  "node_config_resource_version",
  "node_config_kubelet_key",
] as const;

/** The upstream kubelet's families about its configuration. @param status undefined without configuration files */
export function configurationFamilies(status: ConfigurationStatus | undefined): MetricFamily[] {
  const registry = new MetricsRegistry();
  const add = (name: string, help: string, configuration: Configuration | undefined) => {
    const family = registry.gauge(name, `${help} The count is always 1.`, [...LABELS]);
    if (!configuration) return;
    const { id, files } = configuration;
    family.set(1, ["local", id, id, files.map(({ path }) => path).join(",")]);
  };
  add("kubelet_node_config_assigned", "The configuration files as they are.", status?.assigned);
  add("kubelet_node_config_active", "The configuration that is in force.", status?.active);
  add("kubelet_node_config_last_known_good", "The last known good configuration.", status?.lastKnownGood);
  registry
    .gauge("kubelet_node_config_error", "Whether the configuration files are not in force (1) or are (0).")
    .set(status?.error === undefined ? 0 : 1);
  return registry.collect();
}
