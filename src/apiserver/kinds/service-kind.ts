import type { Service } from "../../base/api/service.ts";
import { nodePortOf } from "../../plan/node-port.ts";
import type { ApiObject } from "../api-object.ts";
import { formatLabels } from "./cells.ts";
import { type KindRow, specOf, text } from "./kind-row.ts";
import { showServiceDefaults } from "./shown-fields.ts";

/** `<port>:<port of the node>/<protocol>` */
function ports(object: ApiObject): string {
  const service = object as unknown as Service;
  const shown = (service.spec.ports ?? []).map((each) => {
    const nodePort = nodePortOf(service, each);
    return `${each.port}${nodePort === undefined ? "" : `:${nodePort}`}/${each.protocol ?? "TCP"}`;
  });
  return shown.join(",") || "<none>";
}

const externalIp = (object: ApiObject) =>
  (specOf(object).type === "ExternalName" && specOf(object).externalName) || "<none>";

/** Source: kubectl's printers and core/v1's selectable fields. */
export const SERVICE: KindRow = {
  group: "",
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  categories: ["all"],
  subresources: ["status"],
  columns: [
    text("Type", (it) => specOf(it).type ?? "ClusterIP"),
    text("Cluster-IP", (it) => specOf(it).clusterIP || "<none>"),
    text("External-IP", externalIp),
    text("Port(s)", ports),
    text("Selector", (it) => formatLabels(specOf(it).selector), 1),
  ],
  fields: {
    "spec.clusterIP": (it) => String(specOf(it).clusterIP ?? ""),
    "spec.type": (it) => String(specOf(it).type ?? "ClusterIP"),
  },
  complete: showServiceDefaults,
  description: "Service is a named abstraction of a set of pods.",
};
