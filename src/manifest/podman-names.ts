import { createHash } from "node:crypto";
import type { ObjectMeta } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import type { FieldPath } from "./field-path.ts";
import type { SupportNote } from "./support/find-unsupported.ts";
import { checkDnsLabel, checkDnsSubdomain, checkPortName } from "./validate/names.ts";

/** Names of containers, pods and volumes of an engine. */
const ENGINE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const MAX_CHARACTERS = 253;

/** Whether only the rules of Kubernetes refuse a name: upper case letters, `_`, `.`, or more than 63 characters. */
export const isEngineName = (name: string): boolean => name.length <= MAX_CHARACTERS && ENGINE_NAME.test(name);

/**
 * Renames an object whose name Kubernetes refuses and podman accepts: `pod_A` becomes `pod-a`.
 * Changes the metadata in place.
 * @param path of the metadata in the document
 */
export function renameObject(metadata: ObjectMeta, path: FieldPath): SupportNote[] {
  const { name } = metadata;
  if (name === undefined || checkDnsSubdomain(name).length === 0 || !isEngineName(name)) return [];
  const renamed = toReadableName(name, /[^a-z0-9.]+/g);
  if (checkDnsSubdomain(renamed).length > 0) return [];
  metadata.name = renamed;
  return [{ code: "ignored", path: path.child("name"), message: describeRename("name", renamed) }];
}

/**
 * Renames the volumes and containers of a pod whose names Kubernetes refuses, but podman writes and accepts. References
 * in the pod follow.
 */
export const renameParts = (pod: Pod, path: FieldPath): SupportNote[] => [
  ...renameVolumes(pod, path),
  ...renameContainers(pod, path),
];

function renameVolumes({ spec }: Pod, path: FieldPath): SupportNote[] {
  const { renamed, notes } = renameList(spec.volumes ?? [], path.child("spec").child("volumes"), "volume");
  const nameOf = (name: string) => renamed.get(name) ?? name;
  if (renamed.size === 0) return notes;
  for (const container of [...containersOf(spec), ...(spec.ephemeralContainers ?? [])]) {
    for (const mount of container.volumeMounts ?? []) mount.name = nameOf(mount.name);
    for (const device of container.volumeDevices ?? []) device.name = nameOf(device.name);
    for (const { valueFrom } of container.env ?? []) {
      const file = valueFrom?.fileKeyRef;
      if (file) file.volumeName = nameOf(file.volumeName);
    }
  }
  return notes;
}

function renameContainers({ spec }: Pod, path: FieldPath): SupportNote[] {
  const specPath = path.child("spec");
  const lists = (["initContainers", "containers"] as const).map((list) =>
    renameList(spec[list] ?? [], specPath.child(list), "container"),
  );
  const renamed = new Map(lists.flatMap((list) => [...list.renamed]));
  const references = [
    ...containersOf(spec).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.resourceFieldRef)),
    ...(spec.volumes ?? []).flatMap(
      ({ downwardAPI }) => downwardAPI?.items?.map((item) => item.resourceFieldRef) ?? [],
    ),
  ];
  for (const reference of references) {
    const name = reference?.containerName;
    if (reference && name !== undefined) reference.containerName = renamed.get(name) ?? name;
  }
  return lists.flatMap(({ notes }) => notes);
}

/** A host name that podman accepts, such as the name of its pod: `pod_A` becomes `pod-a`. */
export function renameHost({ spec }: Pod, path: FieldPath): SupportNote[] {
  const { hostname } = spec;
  if (hostname === undefined || checkDnsLabel(hostname).length === 0 || !isEngineName(hostname)) return [];
  const renamed = toReadableName(hostname, /[^a-z0-9]+/g);
  if (checkDnsLabel(renamed).length > 0) return [];
  spec.hostname = renamed;
  const message = `is read as ${renamed}: host names of Kubernetes are DNS labels`;
  return [{ code: "ignored", path: path.child("spec").child("hostname"), message }];
}

/** Names of ports with capitals, as podman accepts them, in lower case. References in the pod follow. */
export function renamePorts({ spec }: Pod, path: FieldPath): SupportNote[] {
  const notes: SupportNote[] = [];
  for (const [index, container] of spec.containers.entries()) {
    const renamed = new Map<string, string>();
    for (const [position, port] of (container.ports ?? []).entries()) {
      const name = port.name?.toLowerCase();
      if (name === undefined || name === port.name || checkPortName(name).length > 0) continue;
      renamed.set(port.name!, name);
      port.name = name;
      const at = path.child("spec").child("containers").index(index).child("ports").index(position).child("name");
      notes.push({
        code: "ignored",
        path: at,
        message: `is read as ${name}: names of ports are lower case in Kubernetes`,
      });
    }
    if (renamed.size === 0) continue;
    const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
    for (const handler of [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]) {
      for (const target of [handler?.httpGet, handler?.tcpSocket]) {
        if (target) target.port = renamed.get(String(target.port)) ?? target.port;
      }
    }
  }
  return notes;
}

/** Gives items of a list DNS labels as names. Changes the items in place. */
function renameList(items: readonly { name: string }[], path: FieldPath, what: string) {
  const taken = new Set(items.map(({ name }) => name));
  const renamed = new Map<string, string>();
  const notes: SupportNote[] = [];
  for (const [index, item] of items.entries()) {
    const { name } = item;
    if (checkDnsLabel(name).length === 0 || !isEngineName(name)) continue;
    const label = toLabel(name, taken, what === "volume");
    if (taken.has(label)) continue;
    taken.add(label);
    renamed.set(name, label);
    item.name = label;
    notes.push({ code: "ignored", path: path.index(index).child("name"), message: describeRename(what, label) });
  }
  return { renamed, notes };
}

const describeRename = (what: string, name: string) =>
  `is not a DNS ${what === "name" ? "name" : "label"}, which Kubernetes requires: ${what === "name" ? "the object" : `the ${what}`} is named ${JSON.stringify(name)} here`;

const toReadableName = (name: string, separators: RegExp) =>
  name
    .toLowerCase()
    .replace(separators, "-")
    .replace(/^[-.]+|[-.]+$/g, "");

/** A readable DNS label, with a hash of the name where it would not be unique. */
function toLabel(name: string, taken: ReadonlySet<string>, isHashed: boolean): string {
  const readable = toReadableName(name, /[^a-z0-9]+/g);
  if (!isHashed && !taken.has(readable) && checkDnsLabel(readable).length === 0) return readable;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  return `${readable.slice(0, 63 - hash.length - 1).replace(/-+$/, "")}-${hash}`;
}
