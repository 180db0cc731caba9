import type { ObjectMeta, Volume, VolumeSourceName } from "../../base/api/pod.ts";
import { compareQuantities, parseQuantity, ZERO_QUANTITY } from "../../base/api/quantity.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { validateAnnotations } from "./metadata.ts";
import { byteLength, checkDnsLabel, checkDnsSubdomain, validateDescendingPath, validateLabels } from "./names.ts";
import { validateLabelSelector } from "./scheduling.ts";

// Sources that are not supported here. Their errors are reported as Kubernetes does.

type Check = (volume: Volume, path: FieldPath, errors: FieldErrors) => void;
type DriverName = Exclude<
  VolumeSourceName,
  | "emptyDir"
  | "hostPath"
  | "secret"
  | "nfs"
  | "persistentVolumeClaim"
  | "downwardAPI"
  | "configMap"
  | "projected"
  | "image"
>;

/** Requires several text fields. */
function requireTexts(source: object, names: readonly string[], path: FieldPath, errors: FieldErrors): void {
  for (const name of names) {
    if (((source as Record<string, string | undefined>)[name] ?? "") === "") errors.required(path.child(name));
  }
}

function validatePartition(partition: number | undefined, path: FieldPath, errors: FieldErrors): void {
  if (partition === undefined || (partition >= 0 && partition <= 255)) return;
  errors.invalid(path.child("partition"), partition, "must be between 0 and 255");
}

function requireSecretName(
  reference: { name?: string | undefined } | undefined,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (reference && reference.name === undefined) errors.required(path.child("secretRef").child("name"));
}

export const DRIVER_CHECKS: Readonly<Record<DriverName, Check>> = {
  gitRepo(volume, path, errors) {
    const source = volume.gitRepo!;
    const sourcePath = path.child("gitRepo");
    requireTexts(source, ["repository"], sourcePath, errors);
    validateDescendingPath(source.directory ?? "", sourcePath.child("directory"), errors);
  },
  gcePersistentDisk(volume, path, errors) {
    const at = path.child("gcePersistentDisk");
    const sourcePath = path.child("persistentDisk");
    const source = volume.gcePersistentDisk!;
    if (source.pdName === "") errors.required(sourcePath.child("pdName"), "", { at: at.child("pdName") });
    const { partition = 0 } = source;
    if (partition < 0 || partition > 255) {
      errors.invalid(sourcePath.child("partition"), partition, "must be between 0 and 255", {
        at: at.child("partition"),
      });
    }
  },
  awsElasticBlockStore(volume, path, errors) {
    const sourcePath = path.child("awsElasticBlockStore");
    requireTexts(volume.awsElasticBlockStore!, ["volumeID"], sourcePath, errors);
    validatePartition(volume.awsElasticBlockStore!.partition, sourcePath, errors);
  },
  iscsi: validateIscsi,
  glusterfs: (volume, path, errors) =>
    requireTexts(volume.glusterfs!, ["endpoints", "path"], path.child("glusterfs"), errors),
  flocker(volume, path, errors) {
    const { datasetName, datasetUUID } = volume.flocker!;
    const sourcePath = path.child("flocker");
    if (datasetName === undefined && datasetUUID === undefined) {
      errors.required(sourcePath, "must have datasetName or datasetUUID");
    }
    if (datasetName !== undefined && datasetUUID !== undefined) {
      errors.invalid(sourcePath, datasetName, "must have only one of datasetName and datasetUUID");
    }
    if (datasetName?.includes("/"))
      errors.invalid(sourcePath.child("datasetName"), datasetName, "must not contain '/'");
  },
  rbd(volume, path, errors) {
    const sourcePath = path.child("rbd");
    if (volume.rbd!.monitors.length === 0) errors.required(sourcePath.child("monitors"));
    requireTexts(volume.rbd!, ["image"], sourcePath, errors);
  },
  cinder(volume, path, errors) {
    requireTexts(volume.cinder!, ["volumeID"], path.child("cinder"), errors);
    requireSecretName(volume.cinder!.secretRef, path.child("cinder"), errors);
  },
  cephfs(volume, path, errors) {
    if (volume.cephfs!.monitors.length === 0) errors.required(path.child("cephfs").child("monitors"));
  },
  quobyte: validateQuobyte,
  fc: validateFibreChannel,
  flexVolume(volume, path, errors) {
    const source = volume.flexVolume!;
    const sourcePath = path.child("flexVolume");
    requireTexts(source, ["driver"], sourcePath, errors);
    for (const key of Object.keys(source.options ?? {})) {
      const domain = `.${key.split("/")[0]!.toLowerCase()}`;
      if (!domain.endsWith(".kubernetes.io") && !domain.endsWith(".k8s.io")) continue;
      const keyPath = sourcePath.child("options").key(key);
      errors.invalid(keyPath, key, "kubernetes.io and k8s.io are reserved", { at: keyPath, atKey: true });
    }
  },
  azureFile: (volume, path, errors) =>
    requireTexts(volume.azureFile!, ["secretName", "shareName"], path.child("azureFile"), errors),
  vsphereVolume: (volume, path, errors) =>
    requireTexts(volume.vsphereVolume!, ["volumePath"], path.child("vsphereVolume"), errors),
  photonPersistentDisk: (volume, path, errors) =>
    requireTexts(volume.photonPersistentDisk!, ["pdID"], path.child("photonPersistentDisk"), errors),
  portworxVolume: (volume, path, errors) =>
    requireTexts(volume.portworxVolume!, ["volumeID"], path.child("portworxVolume"), errors),
  azureDisk: validateAzureDisk,
  storageos(volume, path, errors) {
    const source = volume.storageos!;
    const sourcePath = path.child("storageos");
    if (source.volumeName === undefined) errors.required(sourcePath.child("volumeName"));
    for (const name of ["volumeName", "volumeNamespace"] as const) {
      const value = source[name];
      if (value !== undefined) errors.invalidAll(sourcePath.child(name), value, checkDnsLabel(value));
    }
    requireSecretName(source.secretRef, sourcePath, errors);
  },
  scaleIO: (volume, path, errors) =>
    requireTexts(volume.scaleIO!, ["gateway", "system", "volumeName"], path.child("scaleIO"), errors),
  csi: validateCsi,
  ephemeral: validateEphemeral,
};

/** The pattern of iqn names takes quadratic time. iSCSI allows 223 characters, upstream any number. */
const MAX_INITIATOR_CHARACTERS = 4096;

const ISCSI_FORMATS: readonly (readonly [string, RegExp])[] = [
  ["iqn", /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$/],
  ["eui", /^eui.[A-Za-z0-9]{16}$/],
  ["naa", /^naa.[A-Za-z0-9]{32}$/],
];

function validateIscsi(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const source = volume.iscsi!;
  const sourcePath = path.child("iscsi");
  requireTexts(source, ["targetPortal", "iqn"], sourcePath, errors);
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
    errors.invalid(path.child("name"), volume.name, message);
  }
}

function validateInitiator(name: string, path: FieldPath, at: FieldPath, errors: FieldErrors): void {
  const format = ISCSI_FORMATS.find(([prefix]) => name.startsWith(prefix));
  if (!format) errors.invalid(path, name, "must begin with iqn, eui or naa", { at });
  else if (name.length > MAX_INITIATOR_CHARACTERS || !format[1].test(name))
    errors.invalid(path, name, `must have the format of ${format[0]} names`, { at });
}

function validateQuobyte(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const source = volume.quobyte!;
  const sourcePath = path.child("quobyte");
  const pairs = "must be host:port, or several of them with commas between";
  if (source.registry === "") errors.required(sourcePath.child("registry"), pairs);
  else if (byteLength(source.tenant ?? "") >= 65) {
    errors.required(sourcePath.child("tenant"), "must be a UUID of at most 64 characters");
  } else {
    for (const pair of source.registry.split(",")) {
      if (!isHostPort(pair)) errors.invalid(sourcePath.child("registry"), source.registry, pairs);
    }
  }
  requireTexts(source, ["volume"], sourcePath, errors);
}

/** Go's `net.SplitHostPort`: one colon, unless the host is in brackets; both parts may be empty. */
const isHostPort = (text: string) => /^(?:\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(text);

function validateFibreChannel(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const { targetWWNs, wwids, lun } = volume.fc!;
  const sourcePath = path.child("fc");
  if (!targetWWNs && !wwids) errors.required(sourcePath.child("targetWWNs"), "must have targetWWNs or wwids");
  if (targetWWNs && wwids)
    errors.invalid(sourcePath.child("targetWWNs"), targetWWNs, "must be absent when wwids is set");
  if (!targetWWNs) return;
  if (lun === undefined) errors.required(sourcePath.child("lun"), "is required with targetWWNs");
  else if (lun < 0 || lun > 255) errors.invalid(sourcePath.child("lun"), lun, "must be between 0 and 255");
}

function validateAzureDisk(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const source = volume.azureDisk!;
  const sourcePath = path.child("azureDisk");
  requireTexts(source, ["diskName", "diskURI"], sourcePath, errors);
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

function validateCsi(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const source = volume.csi!;
  const driverPath = path.child("csi").child("driver");
  if (source.driver === "") errors.required(driverPath);
  if (byteLength(source.driver) > 63) errors.tooLong(driverPath, "63 characters");
  errors.invalidAll(driverPath, source.driver, checkDnsSubdomain(source.driver.toLowerCase()));
  const secret = source.nodePublishSecretRef;
  if (!secret) return;
  const namePath = path.child("csi").child("nodePublishSecretRef").child("name");
  if (secret.name === undefined) errors.required(namePath);
  else
    errors.invalidAll(path.child("csi").child("name"), secret.name, checkDnsSubdomain(secret.name), { at: namePath });
}

const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

function validateEphemeral(volume: Volume, path: FieldPath, errors: FieldErrors): void {
  const template = volume.ephemeral!.volumeClaimTemplate;
  const templatePath = path.child("ephemeral").child("volumeClaimTemplate");
  if (!template) return errors.required(templatePath);
  validateTemplateMetadata(template.metadata, templatePath.child("metadata"), errors);
  const { spec } = template;
  const specPath = templatePath.child("spec");
  const modes = spec.accessModes ?? [];
  const modesPath = specPath.child("accessModes");
  if (modes.length === 0) errors.required(modesPath, "must have at least one");
  if (spec.selector) validateLabelSelector(spec.selector, specPath.child("selector"), errors);
  for (const [index, mode] of modes.entries()) {
    if (!ACCESS_MODES.includes(mode))
      errors.notSupported(modesPath, mode, ACCESS_MODES, { at: modesPath.index(index) });
  }
  if (
    modes.includes("ReadWriteOncePod") &&
    modes.some((mode) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode))
  ) {
    errors.forbidden(modesPath, "ReadWriteOncePod excludes other modes");
  }
  const storagePath = specPath.child("resources").key("storage");
  const at = specPath.child("resources").child("requests").key("storage");
  const storage = spec.resources.requests?.storage;
  if (storage === undefined) errors.required(storagePath, "", { at });
  else if (compareQuantities(parseQuantity(storage) ?? ZERO_QUANTITY, ZERO_QUANTITY) <= 0) {
    errors.invalid(storagePath, storage, "must be greater than 0", { at });
  }
  const className = spec.storageClassName ?? "";
  if (className !== "") errors.invalidAll(specPath.child("storageClassName"), className, checkDnsSubdomain(className));
  if (!["Block", "Filesystem"].includes(spec.volumeMode)) {
    errors.notSupported(specPath.child("volumeMode"), spec.volumeMode, ["Block", "Filesystem"]);
  }
  for (const name of ["dataSource", "dataSourceRef"] as const) {
    const source = spec[name];
    if (!source) continue;
    requireTexts(source, ["name", "kind"], specPath.child(name), errors);
    if ((source.apiGroup ?? "") === "" && source.kind !== "PersistentVolumeClaim") {
      errors.invalid(specPath.child(name), source.kind, "must be a PersistentVolumeClaim, or have an apiGroup");
    }
  }
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
