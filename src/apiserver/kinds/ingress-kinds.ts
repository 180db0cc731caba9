import { type Ingress, type IngressBackend, ingressV1beta1 } from "../../base/api/ingress.ts";
import { convertIngress } from "../../manifest/workloads/validate-ingress.ts";
import { type MapNode, toPlainValue, toSourceNode } from "../../manifest/yaml/source-node.ts";
import type { ApiObject } from "../object-store.ts";
import { firstThree } from "../printers/rows.ts";
import { fixedSpec, manifestKind, specOf, text } from "./define-kind.ts";

/** Source: kubectl's `formatHosts`. */
function hosts(object: ApiObject): string {
  const { rules = [] } = object.spec as Ingress["spec"];
  return firstThree(rules.flatMap(({ host }) => host || [])) || "*";
}

function address({ status }: ApiObject): string {
  const { loadBalancer } = (status ?? {}) as { loadBalancer?: { ingress?: { ip?: string }[] } };
  return (loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []).join(",");
}

function parameters(object: ApiObject): string {
  const { apiGroup, kind, name } = (specOf(object).parameters ?? {}) as Readonly<Record<string, string | undefined>>;
  return name === undefined ? "<none>" : `${[kind, apiGroup].filter(Boolean).join(".")}/${name}`;
}

/** Source: the backend of networking/v1beta1 `conversion.go`. */
const toOldBackend = ({ service, ...rest }: IngressBackend) => ({
  ...rest,
  ...(service && { serviceName: service.name, servicePort: service.port?.name || service.port?.number }),
});

/** An Ingress with the fields of v1beta1. */
function toOldIngress(object: ApiObject): ApiObject {
  const { defaultBackend, rules, ...spec } = object.spec as Ingress["spec"];
  const oldRules = rules?.map(({ http, ...rule }) => {
    const paths = http?.paths?.map(({ backend, ...path }) => ({ ...path, backend: toOldBackend(backend) }));
    return { ...rule, ...(http && { http: { ...http, paths } }) };
  });
  return {
    ...object,
    spec: {
      ...spec,
      ...(defaultBackend && { backend: toOldBackend(defaultBackend) }),
      ...(oldRules && { rules: oldRules }),
    },
  };
}

function fromOldIngress(object: ApiObject): ApiObject {
  const { spec } = toPlainValue(convertIngress(toSourceNode({ spec: object.spec }) as MapNode)) as { spec?: unknown };
  return { ...object, spec };
}

/** Source: networking/v1beta1 `APILifecycleDeprecated` and its like. */
const deprecation = "v1.19+, unavailable in v1.22+";

/** Source: kubectl's printers. */
export const INGRESS = manifestKind({
  group: "networking.k8s.io",
  otherVersions: [
    {
      version: "v1beta1",
      deprecation,
      schema: ingressV1beta1,
      conversion: { fromPreferred: toOldIngress, toPreferred: fromOldIngress },
    },
  ],
  kind: "Ingress",
  plural: "ingresses",
  shortNames: ["ing"],
  subresources: ["status"],
  firstStatus: () => ({ loadBalancer: {} }),
  columns: [
    text("Class", (it) => specOf(it).ingressClassName || "<none>"),
    text("Hosts", hosts),
    text("Address", address),
    text("Ports", (it) => (specOf(it).tls ? "80, 443" : "80")),
  ],
});

export const INGRESS_CLASS = manifestKind({
  group: "networking.k8s.io",
  otherVersions: [{ version: "v1beta1", deprecation }],
  kind: "IngressClass",
  plural: "ingressclasses",
  namespaced: false,
  validateUpdate: fixedSpec("controller"),
  columns: [text("Controller", (it) => specOf(it).controller), text("Parameters", parameters)],
});
