/** How a list of a Kubernetes type is merged. */
export interface ListMerge {
  /** Key of the strategic merge patch. */
  patchKey: string;
  /** Keys of server-side apply. */
  mapKeys: readonly string[];
  /** Values of keys that are absent. */
  defaults?: Readonly<Record<string, unknown>>;
  /** A strategic patch removes fields of an item that it does not name (volumes: the old source goes). */
  retainsKeys?: boolean;
}

const byName: ListMerge = { patchKey: "name", mapKeys: ["name"] };
const byType: ListMerge = { patchKey: "type", mapKeys: ["type"] };

/**
 * Lists of objects that are merged item by item; all other lists of objects are replaced as a whole. Source: the
 * patchStrategy, patchMergeKey, listType and listMapKey tags of core/v1, apps/v1 and batch/v1, whose field names are
 * unambiguous but for `ports`.
 */
const LISTS: Readonly<Record<string, ListMerge>> = {
  containers: byName,
  initContainers: byName,
  ephemeralContainers: byName,
  env: byName,
  imagePullSecrets: byName,
  schedulingGates: byName,
  resourceClaims: byName,
  secrets: byName,
  volumes: { ...byName, retainsKeys: true },
  volumeMounts: { patchKey: "mountPath", mapKeys: ["mountPath"] },
  volumeDevices: { patchKey: "devicePath", mapKeys: ["devicePath"] },
  hostAliases: { patchKey: "ip", mapKeys: ["ip"] },
  topologySpreadConstraints: { patchKey: "topologyKey", mapKeys: ["topologyKey", "whenUnsatisfiable"] },
  conditions: byType,
  addresses: byType,
  ownerReferences: { patchKey: "uid", mapKeys: ["uid"] },
  podIPs: { patchKey: "ip", mapKeys: ["ip"] },
  hostIPs: { patchKey: "ip", mapKeys: ["ip"] },
};

const CONTAINER_PORTS: ListMerge = {
  patchKey: "containerPort",
  mapKeys: ["containerPort", "protocol"],
  defaults: { protocol: "TCP" },
};
const SERVICE_PORTS: ListMerge = { patchKey: "port", mapKeys: ["port", "protocol"], defaults: { protocol: "TCP" } };

/** @param path names of the fields down to the list, without indices: `["spec", "containers", "ports"]` */
export function listMergeAt(path: readonly string[]): ListMerge | undefined {
  const field = path.at(-1) ?? "";
  if (field === "ports") return /[cC]ontainers$/.test(path.at(-2) ?? "") ? CONTAINER_PORTS : SERVICE_PORTS;
  return Object.hasOwn(LISTS, field) ? LISTS[field] : undefined;
}

/** Lists of scalars that are sets: a strategic patch adds to them. */
export const isScalarSet = (path: readonly string[]): boolean => path.at(-1) === "finalizers";

/** Maps that are replaced as a whole by server-side apply. Source: structType=atomic. */
export const isAtomicMap = (path: readonly string[]): boolean =>
  ["selector", "nodeSelector", "secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"].includes(
    path.at(-1) ?? "",
  );
