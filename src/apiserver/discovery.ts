import { apiVersionOf, type ResourceDefinition } from "./resource-definition.ts";

/** An entry of discovery that is not a kind of the registry: a review, or a subresource with its own handler. */
export interface ExtraResource {
  group: string;
  version: string;
  /** `selfsubjectreviews`, or `pods/log`. */
  name: string;
  kind: string;
  /** Group and version of its objects when these differ: `Scale` of `autoscaling/v1`. */
  kindGroup?: string;
  kindVersion?: string;
  namespaced: boolean;
  verbs: readonly string[];
}

interface ApiResource {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: readonly string[];
  shortNames?: readonly string[];
  categories?: readonly string[];
}

/** Everything that is served, for discovery. */
export interface ServedResources {
  definitions: readonly ResourceDefinition[];
  extras: readonly ExtraResource[];
}

const groupVersionOf = ({ group, version }: { group: string; version: string }) => apiVersionOf({ group, version });

/** Groups in the order in which kubectl looks for a short name. */
function servedGroups({ definitions, extras }: ServedResources): { group: string; versions: string[] }[] {
  const groups = new Map<string, Set<string>>([["", new Set(["v1"])]]);
  const add = (group: string, version: string) => {
    if (!groups.has(group)) groups.set(group, new Set());
    groups.get(group)!.add(version);
  };
  for (const { group, version } of [...definitions, ...extras]) add(group, version);
  // kubectl before 1.22 evicts only where the group of evictions is served.
  for (const { kindGroup, kindVersion } of extras) if (kindGroup !== undefined) add(kindGroup, kindVersion ?? "v1");
  return [...groups].map(([group, versions]) => ({ group, versions: [...versions] }));
}

/** `/api`. Source: meta/v1 `APIVersions`. */
export const apiVersions = (address: string) => ({
  kind: "APIVersions",
  versions: ["v1"],
  serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
});

const groupObject = (group: string, versions: readonly string[]) => {
  const list = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: list, preferredVersion: list[0] };
};

/** `/apis`. Source: meta/v1 `APIGroupList`. */
export const apiGroupList = (served: ServedResources) => ({
  kind: "APIGroupList",
  apiVersion: "v1",
  groups: servedGroups(served)
    .filter(({ group }) => group !== "")
    .map(({ group, versions }) => groupObject(group, versions)),
});

/** `/apis/<group>`; undefined when it is not served. */
export function apiGroup(group: string, served: ServedResources): object | undefined {
  const found = servedGroups(served).find((it) => it.group === group && group !== "");
  return found && { kind: "APIGroup", apiVersion: "v1", ...groupObject(group, found.versions) };
}

/** `/api/v1`, `/apis/<group>/<version>`; undefined when it is not served. */
export function apiResourceList(group: string, version: string, served: ServedResources): object | undefined {
  const isOfGroup = (it: { group: string; version: string }) => it.group === group && it.version === version;
  const resources = [
    ...served.definitions.filter(isOfGroup).flatMap(toApiResources),
    ...served.extras.filter(isOfGroup).map(extraToApiResource),
  ];
  const isServed = servedGroups(served).some((it) => it.group === group && it.versions.includes(version));
  if (!isServed) return undefined;
  return {
    kind: "APIResourceList",
    ...(group !== "" && { apiVersion: "v1" }),
    groupVersion: groupVersionOf({ group, version }),
    resources,
  };
}

function toApiResources(definition: ResourceDefinition): ApiResource[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources = [] } = definition;
  const { observedStatus } = definition;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames && { shortNames }),
      ...(categories && { categories }),
    },
    ...subresources.map((name) => ({
      name: `${plural}/${name}`,
      singularName: "",
      namespaced,
      ...(name === "scale" ? { group: "autoscaling", version: "v1", kind: "Scale" } : { kind }),
      verbs: name === "status" && observedStatus ? ["get"] : ["get", "patch", "update"],
    })),
  ];
}

const extraToApiResource = (extra: ExtraResource): ApiResource => ({
  name: extra.name,
  singularName: "",
  namespaced: extra.namespaced,
  ...(extra.kindGroup !== undefined && { group: extra.kindGroup }),
  ...(extra.kindVersion !== undefined && { version: extra.kindVersion }),
  kind: extra.kind,
  verbs: extra.verbs,
});

/**
 * Discovery in one response. Source: apidiscovery.k8s.io/v2 `APIGroupDiscoveryList`.
 * @param isCore `/api` lists the core group, `/apis` all others
 */
export function aggregatedDiscovery(served: ServedResources, isCore: boolean, version: "v2" | "v2beta1"): object {
  const groups = servedGroups(served).filter(({ group }) => (group === "") === isCore);
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(({ group, versions }) => ({
      metadata: { ...(group !== "" && { name: group }), creationTimestamp: null },
      versions: versions.map((it) => ({
        version: it,
        resources: aggregatedResources(group, it, served),
        freshness: "Current",
      })),
    })),
  };
}

function aggregatedResources(group: string, version: string, served: ServedResources): object[] {
  const list = apiResourceList(group, version, served) as { resources: ApiResource[] } | undefined;
  const all = list?.resources ?? [];
  const kindOf = (it: ApiResource) => ({ group: it.group ?? group, version: it.version ?? version, kind: it.kind });
  return all
    .filter(({ name }) => !name.includes("/"))
    .map((resource) => ({
      resource: resource.name,
      responseKind: kindOf(resource),
      scope: resource.namespaced ? "Namespaced" : "Cluster",
      singularResource: resource.singularName,
      verbs: resource.verbs,
      ...(resource.shortNames && { shortNames: resource.shortNames }),
      ...(resource.categories && { categories: resource.categories }),
      subresources: all
        .filter(({ name }) => name.startsWith(`${resource.name}/`))
        .map((sub) => ({
          subresource: sub.name.slice(resource.name.length + 1),
          responseKind: kindOf(sub),
          verbs: sub.verbs,
        })),
    }));
}
