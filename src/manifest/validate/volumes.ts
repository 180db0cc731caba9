import type { PodSpec, Volume, VolumeSourceName } from "../../base/api/pod.ts";
import { isNegativeQuantity, parseQuantity } from "../../base/api/quantity.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { checkDnsLabel, checkDnsSubdomain, hasBacksteps, validateNoBacksteps } from "./names.ts";
import { validateDriver } from "./volume-drivers.ts";
import { validateDownwardItems, validateItems, validateMode, validateProjected } from "./volume-files.ts";

/** Volumes without errors, by name: only these can be mounted. */
export type KnownVolumes = ReadonlyMap<string, Volume>;

/** Source: core validation `ValidateVolumes`. */
export function validateVolumes(spec: PodSpec, podName: string, path: FieldPath, errors: FieldErrors): KnownVolumes {
  const known = new Map<string, Volume>();
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const volumePath = path.index(index);
    const before = errors.count;
    validateSource(volume, podName, volumePath, errors);
    const namePath = volumePath.child("name");
    if (volume.name === "") errors.required(namePath);
    else errors.invalidAll(namePath, volume.name, checkDnsLabel(volume.name));
    if (known.has(volume.name)) errors.duplicate(namePath, volume.name);
    if (errors.count === before) known.set(volume.name, volume);
  }
  return known;
}

type SourceCheck = (volume: Volume, path: FieldPath, errors: FieldErrors) => void;

const driver =
  (name: Parameters<typeof validateDriver>[0]): SourceCheck =>
  (volume, path, errors) =>
    validateDriver(name, volume, path, errors);

/** In upstream's order: the first source counts, the others are reported. */
const SOURCE_CHECKS: Readonly<Record<VolumeSourceName, SourceCheck>> = {
  emptyDir: validateEmptyDir,
  hostPath: validateHostPath,
  gitRepo: driver("gitRepo"),
  gcePersistentDisk: driver("gcePersistentDisk"),
  awsElasticBlockStore: driver("awsElasticBlockStore"),
  secret: validateSecretVolume,
  nfs: validateNfs,
  iscsi: driver("iscsi"),
  glusterfs: driver("glusterfs"),
  flocker: driver("flocker"),
  persistentVolumeClaim(volume, path, errors) {
    const { claimName } = volume.persistentVolumeClaim!;
    if (claimName === "") errors.required(path.child("persistentVolumeClaim").child("claimName"));
  },
  rbd: driver("rbd"),
  cinder: driver("cinder"),
  cephfs: driver("cephfs"),
  quobyte: driver("quobyte"),
  downwardAPI: validateDownwardVolume,
  fc: driver("fc"),
  flexVolume: driver("flexVolume"),
  configMap: validateConfigMapVolume,
  azureFile: driver("azureFile"),
  vsphereVolume: driver("vsphereVolume"),
  photonPersistentDisk: driver("photonPersistentDisk"),
  portworxVolume: driver("portworxVolume"),
  azureDisk: driver("azureDisk"),
  storageos: driver("storageos"),
  projected: (volume, path, errors) => validateProjected(volume.projected!, path.child("projected"), errors),
  scaleIO: driver("scaleIO"),
  csi: driver("csi"),
  ephemeral: driver("ephemeral"),
  image: validateImageVolume,
};

/** Upstream's spelling in the error about several sources where it differs from the field. */
const FORBIDDEN_NAMES: Partial<Record<VolumeSourceName, string>> = { downwardAPI: "downwarAPI", cephfs: "cephFS" };

function validateSource(volume: Volume, podName: string, path: FieldPath, errors: FieldErrors): void {
  let first: VolumeSourceName | undefined;
  for (const [name, check] of Object.entries(SOURCE_CHECKS) as [VolumeSourceName, SourceCheck][]) {
    if (volume[name] === undefined) continue;
    if (first === undefined) {
      first = name;
      check(volume, path, errors);
    } else {
      const message = `must be absent: the volume has ${first} already`;
      errors.forbidden(path.child(FORBIDDEN_NAMES[name] ?? name), message, { at: path.child(name), atKey: true });
    }
  }
  if (volume.ephemeral && podName !== "" && volume.name !== "") {
    const claim = `${podName}-${volume.name}`;
    errors.invalidAll(
      path.child("name"),
      volume.name,
      checkDnsSubdomain(claim).map((message) => `the claim's name ${message}`),
    );
  }
}

function validateEmptyDir(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const limit = volume.emptyDir?.sizeLimit;
  const quantity = limit === undefined ? undefined : parseQuantity(limit);
  if (quantity && isNegativeQuantity(quantity)) {
    errors.forbidden(path.child("emptyDir").child("sizeLimit"), `must be 0 or more (found ${limit})`);
  }
}

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

function validateHostPath(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const hostPath = volume.hostPath!;
  const sourcePath = path.child("hostPath");
  if (hostPath.path === "") return errors.required(sourcePath.child("path"));
  validateNoBacksteps(hostPath.path, sourcePath.child("path"), errors);
  if (!HOST_PATH_TYPES.includes(hostPath.type)) {
    errors.notSupported(sourcePath.child("type"), hostPath.type, HOST_PATH_TYPES);
  }
}

function validateSecretVolume(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const secret = volume.secret!;
  const sourcePath = path.child("secret");
  if (secret.secretName === undefined) errors.required(sourcePath.child("secretName"));
  validateMode(secret.defaultMode, sourcePath.child("defaultMode"), errors);
  validateItems(secret.items ?? [], sourcePath.child("items"), errors);
}

function validateConfigMapVolume(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const configMap = volume.configMap!;
  const sourcePath = path.child("configMap");
  if (configMap.name === undefined) errors.required(sourcePath.child("name"));
  validateMode(configMap.defaultMode, sourcePath.child("defaultMode"), errors);
  validateItems(configMap.items ?? [], sourcePath.child("items"), errors);
}

function validateNfs(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const nfs = volume.nfs!;
  const sourcePath = path.child("nfs");
  if (nfs.server === "") errors.required(sourcePath.child("server"));
  if (nfs.path === "") errors.required(sourcePath.child("path"));
  if (!nfs.path.startsWith("/")) errors.invalid(sourcePath.child("path"), nfs.path, "must be an absolute path");
}

function validateDownwardVolume(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const sourcePath = path.child("downwardAPI");
  validateMode(volume.downwardAPI!.defaultMode, sourcePath.child("defaultMode"), errors);
  validateDownwardItems(volume.downwardAPI!.items ?? [], sourcePath, errors);
}

function validateImageVolume(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const image = volume.image!;
  const policies = ["Always", "IfNotPresent", "Never"];
  if (image.reference === undefined) errors.required(path.child("image").child("reference"));
  if (image.pullPolicy !== undefined && !policies.includes(image.pullPolicy)) {
    errors.notSupported(path.child("image").child("pullPolicy"), image.pullPolicy, policies);
  }
}

/** Validates mounts and devices of a container. Source: core validation `ValidateVolumeMounts`, `ValidateVolumeDevices`. */
export function validateMounts(
  container: PodSpec["containers"][number],
  volumes: KnownVolumes,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const mounts = container.volumeMounts ?? [];
  const devices = container.volumeDevices ?? [];
  validateVolumeMounts(container, volumes, path.child("volumeMounts"), errors);
  const mountNames = new Set(mounts.map((mount) => mount.name));
  const mountPaths = lastByName(mounts, "mountPath");
  const devicePaths = new Set<string>();
  const deviceNames = new Set<string>();
  for (const [index, device] of devices.entries()) {
    const devicePath = path.child("volumeDevices").index(index);
    const namePath = devicePath.child("name");
    const volume = volumes.get(device.name);
    if (device.name === "") errors.required(namePath);
    if (deviceNames.has(device.name)) errors.invalid(namePath, device.name, "must be unique in the container");
    if (!volume) errors.notFound(namePath, device.name, "must be the name of a valid volume of the pod");
    else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
      errors.invalid(namePath, device.name, "must be a persistentVolumeClaim or an ephemeral volume");
    }
    const pathPath = devicePath.child("devicePath");
    if (device.devicePath === "") errors.required(pathPath);
    if (devicePaths.has(device.devicePath))
      errors.invalid(pathPath, device.devicePath, "must be unique in the container");
    if (hasBacksteps(device.devicePath)) errors.invalid(pathPath, device.devicePath, "must not contain '..'");
    else devicePaths.add(device.devicePath);
    if (mountNames.has(device.name)) errors.invalid(namePath, device.name, "is mounted already");
    if (mountPaths.has(device.devicePath)) {
      errors.invalid(pathPath, device.devicePath, "is the path of a mount already");
    }
    if (device.name !== "") deviceNames.add(device.name);
  }
}

/** Upstream keeps the last path per name. */
function lastByName<K extends string>(items: readonly ({ name: string } & Record<K, string>)[], key: K): Set<string> {
  return new Set(new Map(items.map((item) => [item.name, item[key]])).values());
}

function validateVolumeMounts(
  container: PodSpec["containers"][number],
  volumes: KnownVolumes,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const taken = new Set<string>();
  const devices = container.volumeDevices ?? [];
  const deviceNames = new Set(devices.map((device) => device.name));
  const devicePaths = lastByName(devices, "devicePath");
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const mountPath = path.index(index);
    const namePath = mountPath.child("name");
    const pathPath = mountPath.child("mountPath");
    const volume = volumes.get(mount.name);
    if (mount.name === "") errors.required(namePath);
    if (!volume) errors.notFound(namePath, mount.name, "must be the name of a valid volume of the pod");
    if (mount.mountPath === "") errors.required(pathPath);
    if (taken.has(mount.mountPath)) errors.invalid(pathPath, mount.mountPath, "must be unique in the container");
    taken.add(mount.mountPath);
    if (deviceNames.has(mount.name)) errors.invalid(namePath, mount.name, "is a device already");
    if (devicePaths.has(mount.mountPath)) {
      errors.invalid(pathPath, mount.mountPath, "is the path of a device already");
    }
    validateSubPaths(mount, path, mountPath, errors);
    validatePropagation(mount, container, path, mountPath, errors);
  }
}

type Mount = NonNullable<PodSpec["containers"][number]["volumeMounts"]>[number];

/** Upstream reports the format of paths without the index of the mount. */
function validateSubPaths(mount: Mount, path: FieldPath, mountPath: FieldPath, errors: FieldErrors): void {
  for (const name of ["subPath", "subPathExpr"] as const) {
    const value = mount[name];
    if (value === undefined) continue;
    const position = { at: mountPath.child(name) };
    if (value.startsWith("/")) errors.invalid(path.child(name), value, "must be a relative path", position);
    validateNoBacksteps(value, path.child(name), errors, position);
  }
  if (mount.subPath !== undefined && mount.subPathExpr !== undefined) {
    errors.invalid(mountPath.child("subPathExpr"), mount.subPathExpr, "must be absent when subPath is set");
  }
}

function validatePropagation(
  mount: Mount,
  container: PodSpec["containers"][number],
  path: FieldPath,
  mountPath: FieldPath,
  errors: FieldErrors,
): void {
  const propagation: string | undefined = mount.mountPropagation;
  const propagations = ["Bidirectional", "HostToContainer", "None"];
  const position = { at: mountPath.child("mountPropagation") };
  if (propagation !== undefined && !propagations.includes(propagation)) {
    errors.notSupported(path.child("mountPropagation"), propagation, propagations, position);
  }
  if (propagation === "Bidirectional" && !container.securityContext?.privileged) {
    errors.forbidden(path.child("mountPropagation"), "Bidirectional is for privileged containers only", position);
  }
  const recursive: string | undefined = mount.recursiveReadOnly;
  if (recursive === undefined || recursive === "Disabled") return;
  const recursivePath = path.child("recursiveReadOnly");
  const recursivePosition = { at: mountPath.child("recursiveReadOnly") };
  if (recursive !== "Enabled" && recursive !== "IfPossible") {
    return errors.notSupported(recursivePath, recursive, ["Disabled", "Enabled", "IfPossible"], recursivePosition);
  }
  if (!mount.readOnly) errors.forbidden(recursivePath, "may be set only when readOnly is true", recursivePosition);
  if (propagation !== undefined && propagation !== "None") {
    errors.forbidden(recursivePath, "may be set only when mountPropagation is None", recursivePosition);
  }
}
