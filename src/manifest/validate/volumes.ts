import type {
  DownwardAPIVolumeFile,
  KeyToPath,
  ObjectMeta,
  PodSpec,
  ProjectedVolumeSource,
  Volume,
  VolumeSourceName,
} from "../../base/api/pod.ts";
import { isNegativeQuantity, parseQuantity } from "../../base/api/quantity.ts";
import type { Field } from "../field.ts";
import { validateClaimSpec } from "../workloads/validate-storage.ts";
import { validateFieldSelector, validateResourceSelector } from "./environment.ts";
import {
  byteLength,
  checkDescendingPath,
  checkDnsLabel,
  checkDnsSubdomain,
  checkNoBacksteps,
  checkUnreservedPath,
  validateAnnotations,
  validateLabels,
} from "./names.ts";
import { validateLabelSelector } from "./scheduling.ts";

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

/** Requires several text fields. */
function requireTexts<T extends object>(source: Field<T>, ...names: readonly (keyof T & string)[]): void {
  for (const name of names) if ((source.value[name] ?? "") === "") source.field(name).required();
}

function requireMonitors(source: Field<{ monitors: string[] }>): void {
  if (source.value.monitors.length === 0) source.field("monitors").required();
}

function requireSecretName(source: Field<{ secretRef?: { name?: string | undefined } | undefined }>): void {
  const { secretRef } = source.value;
  if (secretRef && secretRef.name === undefined) source.field("secretRef").field("name").required();
}

/**
 * In upstream's order: the first source counts, the others are reported. Those that are not supported here are validated
 * too: their errors are reported as Kubernetes does.
 */
const SOURCE_CHECKS: SourceChecks = {
  emptyDir(source) {
    source.field("mode").format((mode) => checkMode(mode, 0o1777));
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
  gitRepo(source) {
    requireTexts(source, "repository");
    source.field("directory").format(checkDescendingPath);
  },
  gcePersistentDisk(source, volume) {
    const reported = source.as(volume.path.child("persistentDisk"));
    requireTexts(reported, "pdName");
    reported.field("partition").between(0, 255);
  },
  awsElasticBlockStore(source) {
    requireTexts(source, "volumeID");
    source.field("partition").between(0, 255);
  },
  secret(source) {
    requireTexts(source, "secretName");
    validateKeys(source);
  },
  nfs(source) {
    const path = source.field("path");
    requireTexts(source, "server", "path");
    if (!path.value.startsWith("/")) path.invalid("must be an absolute path");
  },
  iscsi: validateIscsi,
  glusterfs: (source) => requireTexts(source, "endpoints", "path"),
  flocker(source) {
    const { datasetName: name, datasetUUID: uuid } = source.value;
    if (name === undefined && uuid === undefined) source.required("must have datasetName or datasetUUID");
    if (name !== undefined && uuid !== undefined) {
      source.with(name).invalid("must have only one of datasetName and datasetUUID");
    }
    if (name?.includes("/")) source.field("datasetName").invalid("must not contain '/'");
  },
  persistentVolumeClaim: (source) => requireTexts(source, "claimName"),
  rbd(source) {
    requireTexts(source, "image");
    requireMonitors(source);
  },
  cinder(source) {
    requireTexts(source, "volumeID");
    requireSecretName(source);
  },
  cephfs: requireMonitors,
  quobyte(source) {
    requireTexts(source, "volume");
    const registry = source.field("registry");
    const pairs = "must be host:port, or several of them with commas between";
    if (registry.value === "") registry.required(pairs);
    else if (byteLength(source.value.tenant ?? "") >= 65) {
      source.field("tenant").required("must be a UUID of at most 64 characters");
    } else for (const pair of registry.value.split(",")) if (!isHostPort(pair)) registry.invalid(pairs);
  },
  downwardAPI(source) {
    source.field("defaultMode").format(checkMode);
    validateDownwardItems(source);
  },
  fc(source) {
    const { targetWWNs, wwids, lun } = source.value;
    const names = source.field("targetWWNs");
    if (!targetWWNs && !wwids) names.required("must have targetWWNs or wwids");
    if (targetWWNs && wwids) names.invalid("must be absent when wwids is set");
    if (!targetWWNs) return;
    if (lun === undefined) source.field("lun").required("is required with targetWWNs");
    else source.field("lun").between(0, 255);
  },
  flexVolume(source) {
    requireTexts(source, "driver");
    for (const [key, value] of source.field("options").entries()) {
      const domain = `.${key.split("/")[0]!.toLowerCase()}`;
      if (!domain.endsWith(".kubernetes.io") && !domain.endsWith(".k8s.io")) continue;
      value.key(key).invalid("kubernetes.io and k8s.io are reserved");
    }
  },
  configMap(source) {
    requireTexts(source, "name");
    validateKeys(source);
  },
  azureFile: (source) => requireTexts(source, "secretName", "shareName"),
  vsphereVolume: (source) => requireTexts(source, "volumePath"),
  photonPersistentDisk: (source) => requireTexts(source, "pdID"),
  portworxVolume: (source) => requireTexts(source, "volumeID"),
  azureDisk(source) {
    requireTexts(source, "diskName", "diskURI");
    source.field("cachingMode").oneOf(["None", "ReadOnly", "ReadWrite"]);
    source.field("kind").oneOf(["Dedicated", "Managed", "Shared"]);
    const prefix = source.value.kind === "Managed" ? "/subscriptions/" : "https://";
    if (!source.value.diskURI.startsWith(prefix)) source.field("diskURI").notSupported([`${prefix}…`]);
  },
  storageos(source) {
    requireTexts(source, "volumeName");
    for (const name of ["volumeName", "volumeNamespace"] as const) source.field(name).format(checkDnsLabel);
    requireSecretName(source);
  },
  projected: validateProjected,
  scaleIO: (source) => requireTexts(source, "gateway", "system", "volumeName"),
  csi(source) {
    const driver = source.field("driver");
    if (driver.value === "") driver.required();
    if (byteLength(driver.value) > 63) driver.tooLong("63 characters");
    driver.format((name) => checkDnsSubdomain(name.toLowerCase()));
    const secret = source.field("nodePublishSecretRef");
    if (!secret.value) return;
    const name = secret.field("name");
    if (name.value === undefined) name.required();
    else name.as(source.path.child("name")).format(checkDnsSubdomain);
  },
  ephemeral(source) {
    const template = source.field("volumeClaimTemplate");
    if (!template.value) return template.required();
    validateTemplateMetadata(template.field("metadata").with(template.value.metadata));
    validateClaimSpec(template.field("spec").with(template.value.spec));
  },
  image(source) {
    requireTexts(source, "reference");
    source.field("pullPolicy").oneOf(["Always", "IfNotPresent", "Never"]);
  },
};

const HOST_PATH_TYPES = [
  "",
  ..."BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket".split(" "),
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

/** The pattern of iqn names takes quadratic time. iSCSI allows 223 characters, upstream any number. */
const MAX_INITIATOR_CHARACTERS = 4096;

const ISCSI_FORMATS: readonly (readonly [string, RegExp])[] = [
  ["iqn", /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$/],
  ["eui", /^eui.[A-Za-z0-9]{16}$/],
  ["naa", /^naa.[A-Za-z0-9]{32}$/],
];

function validateIscsi(source: Field<NonNullable<Volume["iscsi"]>>, volume: Field<Volume>): void {
  requireTexts(source, "targetPortal", "iqn");
  if (source.value.iqn !== "") source.field("iqn").format(checkInitiator);
  source.field("lun").between(0, 255);
  const { chapAuthDiscovery, chapAuthSession, secretRef, initiatorName, targetPortal } = source.value;
  if ((chapAuthDiscovery || chapAuthSession) && !secretRef) {
    source.field("secretRef").required("is required when CHAP authentication is on");
  }
  if (initiatorName === undefined) return;
  source.field("initiatorName").as(source.path.child("initiatorname")).format(checkInitiator);
  if (byteLength(`${volume.value.name}:${targetPortal}`) > 64) {
    const message = "name and iscsi.targetPortal together must have fewer than 64 characters when initiatorName is set";
    volume.field("name").invalid(message);
  }
}

function checkInitiator(name: string): string[] {
  const format = ISCSI_FORMATS.find(([prefix]) => name.startsWith(prefix));
  if (!format) return ["must begin with iqn, eui or naa"];
  const matches = name.length <= MAX_INITIATOR_CHARACTERS && format[1].test(name);
  return matches ? [] : [`must have the format of ${format[0]} names`];
}

/** Go's `net.SplitHostPort`: one colon, unless the host is in brackets; both parts may be empty. */
const isHostPort = (text: string) => /^(?:\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(text);

/** Only labels and annotations of the template are used. */
function validateTemplateMetadata(metadata: Field<ObjectMeta>): void {
  validateAnnotations(metadata.field("annotations"));
  validateLabels(metadata.field("labels"));
  for (const [name, value] of Object.entries(metadata.value) as [keyof ObjectMeta, unknown][]) {
    if (name === "labels" || name === "annotations" || value === undefined || value === null) continue;
    // Upstream derives the name from the Go field, UID.
    const reported = metadata.field(name).as(metadata.path.child(name === "uid" ? "uID" : name));
    reported.key(name).forbidden("cannot be set for an ephemeral volume");
  }
}

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;

/** Modes are written in octal in YAML (0644), in decimal in JSON (420). */
function checkMode(mode: number, max = 0o777): string[] {
  if (mode >= 0 && mode <= max) return [];
  const meant = /^[0-7]{3}$/.test(String(mode)) ? `: write 0${mode}` : "";
  return [`must be between 0 and 0${max.toString(8)} (octal; this is 0${mode.toString(8)})${meant}`];
}

/** Validates files made from keys of a ConfigMap or Secret. */
function validateKeys(source: Field<{ defaultMode?: number; items?: readonly KeyToPath[] | undefined }>): void {
  source.field("defaultMode").format(checkMode);
  for (const item of source.field("items").items()) {
    requireTexts(item, "key", "path");
    item.field("path").format(checkUnreservedPath);
    item.field("mode").format(checkMode);
  }
}

const VOLUME_FIELDS = ["name", "namespace", "labels", "annotations", "uid"].map((name) => `metadata.${name}`);

/** Validates files made from fields of the pod. Upstream reports them on the source, without the index of the item. */
function validateDownwardItems(source: Field<{ items?: DownwardAPIVolumeFile[] | undefined } | undefined>): void {
  for (const indexed of source.field("items").items()) {
    const item = indexed.as(source.path);
    const { path, fieldRef, resourceFieldRef } = item.value;
    if (path === "") item.field("path").required();
    item.field("path").format(checkUnreservedPath);
    validateFieldSelector(item.field("fieldRef"), VOLUME_FIELDS);
    if (fieldRef) {
      if (resourceFieldRef) item.with("resource").invalid("must have only one of fieldRef and resourceFieldRef");
    } else if (resourceFieldRef) validateResourceSelector(item.field("resourceFieldRef"), true);
    else item.required("must have fieldRef or resourceFieldRef");
    item.field("mode").format(checkMode);
  }
}

/** Validates several sources in one directory: their files must not collide. */
function validateProjected(projected: Field<ProjectedVolumeSource>): void {
  projected.field("defaultMode").format(checkMode);
  const taken = new Set<string>();
  const claim = (file: Field<string>) => {
    if (file.value !== "" && taken.has(file.value)) file.as(projected.path).invalid("two sources make the same file");
    taken.add(file.value);
  };
  for (const source of projected.field("sources").items()) {
    for (const kind of ["secret", "configMap"] as const) {
      const object = source.field(kind);
      if (!object.value) continue;
      requireTexts(object as Field<{ name?: string | undefined }>, "name");
      validateKeys(object as Field<{ items?: readonly KeyToPath[] }>);
      for (const item of object.field("items").items()) claim(item.field("path"));
    }
    validateDownwardItems(source.field("downwardAPI"));
    for (const item of source.field("downwardAPI").field("items").items()) claim(item.field("path"));
    validateToken(source.field("serviceAccountToken"), projected);
    const bundle = source.field("clusterTrustBundle");
    if (bundle.value) {
      validateTrustBundle(bundle.with(bundle.value));
      claim(bundle.field("path").with(bundle.value.path));
    }
    const kinds = Object.keys(source.value);
    if (kinds.length > 1) source.forbidden(`must have only one source (found ${kinds.join(", ")})`);
  }
}

type Projection = ProjectedVolumeSource["sources"][number];

function validateToken(token: Field<Projection["serviceAccountToken"]>, projected: Field): void {
  const seconds = token.field("expirationSeconds");
  if (seconds.value! < MIN_TOKEN_SECONDS) seconds.invalid(`must be at least ${MIN_TOKEN_SECONDS}`);
  if (seconds.value! > MAX_TOKEN_SECONDS) seconds.invalid(`must be at most ${MAX_TOKEN_SECONDS}`);
  token.field("path").as(projected.path.child("path")).requiredFormat(checkUnreservedPath);
}

function validateTrustBundle(bundle: Field<NonNullable<Projection["clusterTrustBundle"]>>): void {
  const { name, signerName, labelSelector } = bundle.value;
  if (name !== undefined && signerName !== undefined) {
    bundle.with(name).invalid("must have only one of name and signerName");
  } else if (name === undefined && signerName === undefined) bundle.required("must have name or signerName");
  if (name === "") bundle.field("name").required();
  if (signerName === "") bundle.field("signerName").required();
  const selector = bundle.field("labelSelector");
  if (labelSelector && name !== undefined) selector.invalid("must be absent when name is set");
  else validateLabelSelector(selector);
  if (bundle.value.path === "") bundle.field("path").required();
  bundle.field("path").format(checkUnreservedPath);
}
