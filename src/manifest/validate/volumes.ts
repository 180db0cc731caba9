import type { Container, PodSpec, Volume, VolumeSourceName } from "../../base/api/pod.ts";
import { isNegativeQuantity, parseQuantity } from "../../base/api/quantity.ts";
import type { Field } from "../field.ts";
import { checkDescendingPath, checkDnsLabel, checkDnsSubdomain, checkNoBacksteps, hasBacksteps } from "./names.ts";
import { DRIVER_CHECKS } from "./volume-drivers.ts";
import { checkMode, validateDownwardItems, validateItems, validateProjected } from "./volume-files.ts";

/** Volumes without errors, by name: only these can be mounted. */
export type KnownVolumes = ReadonlyMap<string, Volume>;

/** Source: core validation `ValidateVolumes`. */
export function validateVolumes(volumes: Field<PodSpec["volumes"]>, podName: string): KnownVolumes {
  const known = new Map<string, Volume>();
  for (const volume of volumes.items()) {
    const { errors } = volume;
    const before = errors.length;
    validateSource(volume, podName);
    const name = volume.field("name");
    name.requiredFormat(checkDnsLabel);
    if (known.has(name.value)) name.duplicate();
    if (errors.length === before) known.set(name.value, volume.value);
  }
  return known;
}

/** The source, and the volume that has it. */
type SourceChecks = {
  readonly [K in VolumeSourceName]: (source: Field<NonNullable<Volume[K]>>, volume: Field<Volume>) => void;
};

/** In upstream's order: the first source counts, the others are reported. */
const SOURCE_CHECKS: SourceChecks = {
  emptyDir(source) {
    const { sizeLimit } = source.value;
    const quantity = parseQuantity(sizeLimit ?? "0");
    if (quantity && isNegativeQuantity(quantity))
      source.field("sizeLimit").forbidden(`must be 0 or more (found ${sizeLimit})`);
  },
  hostPath(source) {
    const path = source.field("path");
    if (path.value === "") return path.required();
    path.format(checkNoBacksteps);
    source.field("type").oneOf(HOST_PATH_TYPES);
  },
  gitRepo: DRIVER_CHECKS.gitRepo,
  gcePersistentDisk: DRIVER_CHECKS.gcePersistentDisk,
  awsElasticBlockStore: DRIVER_CHECKS.awsElasticBlockStore,
  secret(source) {
    if (source.value.secretName === undefined) source.field("secretName").required();
    source.field("defaultMode").format(checkMode);
    validateItems(source.field("items"));
  },
  nfs(source) {
    const path = source.field("path");
    if (source.value.server === "") source.field("server").required();
    if (path.value === "") path.required();
    if (!path.value.startsWith("/")) path.invalid("must be an absolute path");
  },
  iscsi: DRIVER_CHECKS.iscsi,
  glusterfs: DRIVER_CHECKS.glusterfs,
  flocker: DRIVER_CHECKS.flocker,
  persistentVolumeClaim(source) {
    if (source.value.claimName === "") source.field("claimName").required();
  },
  rbd: DRIVER_CHECKS.rbd,
  cinder: DRIVER_CHECKS.cinder,
  cephfs: DRIVER_CHECKS.cephfs,
  quobyte: DRIVER_CHECKS.quobyte,
  downwardAPI(source) {
    source.field("defaultMode").format(checkMode);
    validateDownwardItems(source);
  },
  fc: DRIVER_CHECKS.fc,
  flexVolume: DRIVER_CHECKS.flexVolume,
  configMap(source) {
    if (source.value.name === undefined) source.field("name").required();
    source.field("defaultMode").format(checkMode);
    validateItems(source.field("items"));
  },
  azureFile: DRIVER_CHECKS.azureFile,
  vsphereVolume: DRIVER_CHECKS.vsphereVolume,
  photonPersistentDisk: DRIVER_CHECKS.photonPersistentDisk,
  portworxVolume: DRIVER_CHECKS.portworxVolume,
  azureDisk: DRIVER_CHECKS.azureDisk,
  storageos: DRIVER_CHECKS.storageos,
  projected: validateProjected,
  scaleIO: DRIVER_CHECKS.scaleIO,
  csi: DRIVER_CHECKS.csi,
  ephemeral: DRIVER_CHECKS.ephemeral,
  image(source) {
    if (source.value.reference === undefined) source.field("reference").required();
    source.field("pullPolicy").oneOf(["Always", "IfNotPresent", "Never"]);
  },
};

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

/** Upstream's spelling in the error about several sources where it differs from the field. */
const FORBIDDEN_NAMES: Partial<Record<VolumeSourceName, string>> = { downwardAPI: "downwarAPI", cephfs: "cephFS" };

function validateSource(volume: Field<Volume>, podName: string): void {
  const names = Object.keys(SOURCE_CHECKS) as VolumeSourceName[];
  const [first, ...others] = names.filter((name) => volume.value[name] !== undefined);
  const check = first && (SOURCE_CHECKS[first] as (source: Field, volume: Field<Volume>) => void);
  if (first) check?.(volume.field(first), volume);
  for (const name of others) {
    const source = volume.field(name).key(name);
    const reported = source.as(volume.path.child(FORBIDDEN_NAMES[name] ?? name));
    reported.forbidden(`must be absent: the volume has ${first} already`);
  }
  const { name } = volume.value;
  if (!volume.value.ephemeral || podName === "" || name === "") return;
  const messages = checkDnsSubdomain(`${podName}-${name}`);
  volume.field("name").format(() => messages.map((message) => `the claim's name ${message}`));
}

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
