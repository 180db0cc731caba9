import type { ObjectMeta, Volume } from "../../base/api/pod.ts";
import type { ClusterVolumeName } from "../../base/api/volume-drivers.ts";
import type { FieldPath } from "../field-path.ts";
import { validateClaimSpec } from "../workloads/validate-storage.ts";
import type { FieldErrors } from "./field-errors.ts";
import { validateAnnotations } from "./metadata.ts";
import { byteLength, checkDnsLabel, checkDnsSubdomain, validateDescendingPath, validateLabels } from "./names.ts";

/** Sources that are not supported here. Their errors are reported as Kubernetes does. */
type DriverName = ClusterVolumeName | "gitRepo" | "ephemeral";

interface DriverRule<Source> {
  /** Fields that must have a text. */
  texts?: readonly (keyof Source & string)[];
  check?: (source: Source, path: FieldPath, errors: FieldErrors, volume: Volume, volumePath: FieldPath) => void;
}

const DRIVER_RULES: { readonly [K in DriverName]: DriverRule<NonNullable<Volume[K]>> } = {
  gitRepo: {
    texts: ["repository"],
    check: ({ directory = "" }, path, errors) => validateDescendingPath(directory, path.child("directory"), errors),
  },
  gcePersistentDisk: { texts: ["pdName"], check: checkPartition },
  awsElasticBlockStore: { texts: ["volumeID"], check: checkPartition },
  iscsi: { texts: ["targetPortal", "iqn"], check: checkIscsi },
  glusterfs: { texts: ["endpoints", "path"] },
  flocker: {
    check({ datasetName, datasetUUID }, path, errors) {
      if (datasetName === undefined && datasetUUID === undefined) {
        errors.required(path, "must have datasetName or datasetUUID");
      }
      if (datasetName !== undefined && datasetUUID !== undefined) {
        errors.invalid(path, datasetName, "must have only one of datasetName and datasetUUID");
      }
      if (datasetName?.includes("/")) errors.invalid(path.child("datasetName"), datasetName, "must not contain '/'");
    },
  },
  rbd: { texts: ["image"], check: requireMonitors },
  cinder: { texts: ["volumeID"], check: requireSecretName },
  cephfs: { check: requireMonitors },
  quobyte: { texts: ["volume"], check: checkQuobyte },
  fc: { check: checkFibreChannel },
  flexVolume: {
    texts: ["driver"],
    check({ options = {} }, path, errors) {
      for (const key of Object.keys(options)) {
        const domain = `.${key.split("/")[0]!.toLowerCase()}`;
        if (!domain.endsWith(".kubernetes.io") && !domain.endsWith(".k8s.io")) continue;
        const keyPath = path.child("options").key(key);
        errors.invalid(keyPath, key, "kubernetes.io and k8s.io are reserved", { at: keyPath, atKey: true });
      }
    },
  },
  azureFile: { texts: ["secretName", "shareName"] },
  vsphereVolume: { texts: ["volumePath"] },
  photonPersistentDisk: { texts: ["pdID"] },
  portworxVolume: { texts: ["volumeID"] },
  azureDisk: { texts: ["diskName", "diskURI"], check: checkAzureDisk },
  storageos: {
    check(source, path, errors) {
      if (source.volumeName === undefined) errors.required(path.child("volumeName"));
      for (const name of ["volumeName", "volumeNamespace"] as const) {
        const value = source[name];
        if (value !== undefined) errors.invalidAll(path.child(name), value, checkDnsLabel(value));
      }
      requireSecretName(source, path, errors);
    },
  },
  scaleIO: { texts: ["gateway", "system", "volumeName"] },
  csi: { check: checkCsi },
  ephemeral: { check: checkEphemeral },
};

/** Upstream's spelling in errors where it differs from the field. */
const REPORTED_NAMES: Partial<Record<DriverName, string>> = { gcePersistentDisk: "persistentDisk" };

/** @param path of the volume */
export function validateDriver(name: DriverName, volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const { texts = [], check } = DRIVER_RULES[name] as DriverRule<object>;
  const source = volume[name] as Record<string, string | undefined>;
  const reported = path.child(REPORTED_NAMES[name] ?? name);
  requireTexts(source, texts, reported, errors, path.child(name));
  check?.(source, reported, errors, volume, path);
}

/** Requires several text fields. */
function requireTexts(
  source: object,
  names: readonly string[],
  path: FieldPath,
  errors: FieldErrors,
  at: FieldPath = path,
): void {
  for (const name of names) {
    const value = (source as Record<string, string | undefined>)[name] ?? "";
    if (value === "") errors.required(path.child(name), "", { at: at.child(name) });
  }
}

function checkPartition({ partition = 0 }: { partition?: number | undefined }, path: FieldPath, errors: FieldErrors) {
  if (partition < 0 || partition > 255) errors.invalid(path.child("partition"), partition, "must be between 0 and 255");
}

function requireMonitors({ monitors }: { monitors: readonly string[] }, path: FieldPath, errors: FieldErrors): void {
  if (monitors.length === 0) errors.required(path.child("monitors"));
}

function requireSecretName(
  { secretRef }: { secretRef?: { name?: string | undefined } | undefined },
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (secretRef && secretRef.name === undefined) errors.required(path.child("secretRef").child("name"));
}

/** The pattern of iqn names takes quadratic time. iSCSI allows 223 characters, upstream any number. */
const MAX_INITIATOR_CHARACTERS = 4096;

const ISCSI_FORMATS: readonly (readonly [string, RegExp])[] = [
  ["iqn", /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$/],
  ["eui", /^eui.[A-Za-z0-9]{16}$/],
  ["naa", /^naa.[A-Za-z0-9]{32}$/],
];

function checkIscsi(
  source: NonNullable<Volume["iscsi"]>,
  sourcePath: FieldPath,
  errors: FieldErrors,
  volume: Volume,
  volumePath: FieldPath,
): void {
  if (source.iqn !== "") validateInitiator(source.iqn, sourcePath.child("iqn"), sourcePath.child("iqn"), errors);
  if (source.lun < 0 || source.lun > 255)
    errors.invalid(sourcePath.child("lun"), source.lun, "must be between 0 and 255");
  if ((source.chapAuthDiscovery || source.chapAuthSession) && !source.secretRef) {
    errors.required(sourcePath.child("secretRef"), "is required when CHAP authentication is on");
  }
  if (source.initiatorName === undefined) return;
  validateInitiator(source.initiatorName, sourcePath.child("initiatorname"), sourcePath.child("initiatorName"), errors);
  if (byteLength(`${volume.name}:${source.targetPortal}`) > 64) {
    const message = "name and iscsi.targetPortal together must have fewer than 64 characters when initiatorName is set";
    errors.invalid(volumePath.child("name"), volume.name, message);
  }
}

function validateInitiator(name: string, path: FieldPath, at: FieldPath, errors: FieldErrors): void {
  const format = ISCSI_FORMATS.find(([prefix]) => name.startsWith(prefix));
  if (!format) errors.invalid(path, name, "must begin with iqn, eui or naa", { at });
  else if (name.length > MAX_INITIATOR_CHARACTERS || !format[1].test(name))
    errors.invalid(path, name, `must have the format of ${format[0]} names`, { at });
}

function checkQuobyte(source: NonNullable<Volume["quobyte"]>, sourcePath: FieldPath, errors: FieldErrors): void {
  const pairs = "must be host:port, or several of them with commas between";
  if (source.registry === "") errors.required(sourcePath.child("registry"), pairs);
  else if (byteLength(source.tenant ?? "") >= 65) {
    errors.required(sourcePath.child("tenant"), "must be a UUID of at most 64 characters");
  } else {
    for (const pair of source.registry.split(",")) {
      if (!isHostPort(pair)) errors.invalid(sourcePath.child("registry"), source.registry, pairs);
    }
  }
}

/** Go's `net.SplitHostPort`: one colon, unless the host is in brackets; both parts may be empty. */
const isHostPort = (text: string) => /^(?:\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(text);

function checkFibreChannel(
  { targetWWNs, wwids, lun }: NonNullable<Volume["fc"]>,
  sourcePath: FieldPath,
  errors: FieldErrors,
): void {
  if (!targetWWNs && !wwids) errors.required(sourcePath.child("targetWWNs"), "must have targetWWNs or wwids");
  if (targetWWNs && wwids)
    errors.invalid(sourcePath.child("targetWWNs"), targetWWNs, "must be absent when wwids is set");
  if (!targetWWNs) return;
  if (lun === undefined) errors.required(sourcePath.child("lun"), "is required with targetWWNs");
  else if (lun < 0 || lun > 255) errors.invalid(sourcePath.child("lun"), lun, "must be between 0 and 255");
}

function checkAzureDisk(source: NonNullable<Volume["azureDisk"]>, sourcePath: FieldPath, errors: FieldErrors): void {
  const choices = [
    ["cachingMode", ["None", "ReadOnly", "ReadWrite"]],
    ["kind", ["Dedicated", "Managed", "Shared"]],
  ] as const;
  for (const [name, values] of choices) {
    if (!(values as readonly string[]).includes(source[name])) {
      errors.notSupported(sourcePath.child(name), source[name], values);
    }
  }
  const prefix = source.kind === "Managed" ? "/subscriptions/" : "https://";
  if (!source.diskURI.startsWith(prefix))
    errors.notSupported(sourcePath.child("diskURI"), source.diskURI, [`${prefix}…`]);
}

function checkCsi(source: NonNullable<Volume["csi"]>, path: FieldPath, errors: FieldErrors): void {
  const driverPath = path.child("driver");
  if (source.driver === "") errors.required(driverPath);
  if (byteLength(source.driver) > 63) errors.tooLong(driverPath, "63 characters");
  errors.invalidAll(driverPath, source.driver, checkDnsSubdomain(source.driver.toLowerCase()));
  const secret = source.nodePublishSecretRef;
  if (!secret) return;
  const namePath = path.child("nodePublishSecretRef").child("name");
  if (secret.name === undefined) errors.required(namePath);
  else errors.invalidAll(path.child("name"), secret.name, checkDnsSubdomain(secret.name), { at: namePath });
}

function checkEphemeral(
  { volumeClaimTemplate: template }: NonNullable<Volume["ephemeral"]>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const templatePath = path.child("volumeClaimTemplate");
  if (!template) return errors.required(templatePath);
  validateTemplateMetadata(template.metadata, templatePath.child("metadata"), errors);
  validateClaimSpec(template.spec, templatePath.child("spec"), errors);
}

/** Only labels and annotations of the template are used. */
function validateTemplateMetadata(metadata: ObjectMeta, path: FieldPath, errors: FieldErrors): void {
  validateAnnotations(metadata.annotations ?? {}, path.child("annotations"), errors);
  validateLabels(metadata.labels ?? {}, path.child("labels"), errors);
  for (const [name, value] of Object.entries(metadata)) {
    if (name === "labels" || name === "annotations" || value === undefined || value === null) continue;
    // Upstream derives the name from the Go field, UID.
    const upstream = path.child(name === "uid" ? "uID" : name);
    errors.forbidden(upstream, "cannot be set for an ephemeral volume", { at: path.child(name), atKey: true });
  }
}
