import type { Container } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { checkDescendingPath, hasBacksteps } from "./names.ts";
import type { KnownVolumes } from "./volumes.ts";

/** Validates mounts and devices of a container. Source: core validation `ValidateVolumeMounts`, `ValidateVolumeDevices`. */
export function validateMounts(container: Field<Container>, volumes: KnownVolumes): void {
  validateVolumeMounts(container, volumes);
  const { volumeMounts: mounts = [] } = container.value;
  const mountNames = new Set(mounts.map(({ name }) => name));
  const mountPaths = lastByName(mounts, "mountPath");
  const devicePaths = new Set<string>();
  const deviceNames = new Set<string>();
  for (const device of container.field("volumeDevices").items()) {
    const name = device.field("name");
    const volume = volumes.get(name.value);
    if (name.value === "") name.required();
    if (deviceNames.has(name.value)) name.invalid("must be unique in the container");
    if (!volume) name.notFound("must be the name of a valid volume of the pod");
    else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
      name.invalid("must be a persistentVolumeClaim or an ephemeral volume");
    }
    const path = device.field("devicePath");
    if (path.value === "") path.required();
    if (devicePaths.has(path.value)) path.invalid("must be unique in the container");
    if (hasBacksteps(path.value)) path.invalid("must not contain '..'");
    else devicePaths.add(path.value);
    if (mountNames.has(name.value)) name.invalid("is mounted already");
    if (mountPaths.has(path.value)) path.invalid("is the path of a mount already");
    if (name.value !== "") deviceNames.add(name.value);
  }
}

/** Upstream keeps the last path per name. */
function lastByName<K extends string>(items: readonly ({ name: string } & Record<K, string>)[], key: K): Set<string> {
  return new Set(new Map(items.map((item) => [item.name, item[key]])).values());
}

function validateVolumeMounts(container: Field<Container>, volumes: KnownVolumes): void {
  const taken = new Set<string>();
  const { volumeDevices: devices = [], securityContext } = container.value;
  const deviceNames = new Set(devices.map((device) => device.name));
  const devicePaths = lastByName(devices, "devicePath");
  const mounts = container.field("volumeMounts");
  for (const mount of mounts.items()) {
    const name = mount.field("name");
    const path = mount.field("mountPath");
    if (name.value === "") name.required();
    if (!volumes.has(name.value)) name.notFound("must be the name of a valid volume of the pod");
    if (path.value === "") path.required();
    if (taken.has(path.value)) path.invalid("must be unique in the container");
    taken.add(path.value);
    if (deviceNames.has(name.value)) name.invalid("is a device already");
    if (devicePaths.has(path.value)) path.invalid("is the path of a device already");
    for (const field of ["subPath", "subPathExpr"] as const) {
      mount.as(mounts.path).field(field).format(checkDescendingPath);
    }
    if (mount.value.subPath !== undefined && mount.value.subPathExpr !== undefined) {
      mount.field("subPathExpr").invalid("must be absent when subPath is set");
    }
    validatePropagation(mount.as(mounts.path), securityContext?.privileged ?? false);
  }
}

type Mount = NonNullable<Container["volumeMounts"]>[number];

/** @param mount with the path of the list: upstream reports these without the index */
function validatePropagation(mount: Field<Mount>, isPrivileged: boolean): void {
  const propagation = mount.field("mountPropagation");
  propagation.oneOf(["Bidirectional", "HostToContainer", "None"]);
  if (propagation.value === "Bidirectional" && !isPrivileged) {
    propagation.forbidden("Bidirectional is for privileged containers only");
  }
  const recursive = mount.field("recursiveReadOnly");
  recursive.oneOf(["Disabled", "Enabled", "IfPossible"]);
  if (recursive.value !== "Enabled" && recursive.value !== "IfPossible") return;
  if (!mount.value.readOnly) recursive.forbidden("may be set only when readOnly is true");
  if (propagation.value !== undefined && propagation.value !== "None") {
    recursive.forbidden("may be set only when mountPropagation is None");
  }
}
