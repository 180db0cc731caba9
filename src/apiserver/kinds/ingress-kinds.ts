import type { Ingress } from "../../base/api/ingress.ts";
import type { ApiObject } from "../object-store.ts";
import { fixedSpec, manifestKind, readClusterObject, specOf, text } from "./define-kind.ts";

const MAX_HOSTS = 3;

/** Source: kubectl's `formatHosts`. */
function hosts(object: ApiObject): string {
  const { rules = [] } = object.spec as Ingress["spec"];
  const found = rules.flatMap(({ host }) => host || []);
  const more = found.length - MAX_HOSTS;
  return (
    found
      .slice(0, MAX_HOSTS)
      .join(",")
      .concat(more > 0 ? ` + ${more} more...` : "") || "*"
  );
}

function address({ status }: ApiObject): string {
  const { loadBalancer } = (status ?? {}) as { loadBalancer?: { ingress?: { ip?: string }[] } };
  return (loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []).join(",");
}

function parameters(object: ApiObject): string {
  const { apiGroup, kind, name } = (specOf(object).parameters ?? {}) as Readonly<Record<string, string | undefined>>;
  return name === undefined ? "<none>" : `${[kind, apiGroup].filter(Boolean).join(".")}/${name}`;
}

/** Source: kubectl's printers. */
export const INGRESS = manifestKind({
  group: "networking.k8s.io",
  kind: "Ingress",
  plural: "ingresses",
  shortNames: ["ing"],
  subresources: ["status"],
  columns: [
    text("Class", (it) => specOf(it).ingressClassName || "<none>"),
    text("Hosts", hosts),
    text("Address", address),
    text("Ports", (it) => (specOf(it).tls ? "80, 443" : "80")),
  ],
  description: "Ingress is a set of rules by which requests of HTTP reach Services.",
});

export const INGRESS_CLASS = manifestKind({
  group: "networking.k8s.io",
  kind: "IngressClass",
  plural: "ingressclasses",
  namespaced: false,
  decode: readClusterObject,
  validateUpdate: fixedSpec("controller"),
  columns: [text("Controller", (it) => specOf(it).controller), text("Parameters", parameters)],
  description: "IngressClass is a class of Ingresses: the server that serves them.",
});
