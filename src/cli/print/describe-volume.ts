import type { DownwardAPIVolumeFile, Volume, VolumeProjection } from "../../base/api/pod.ts";
import type { Description } from "./description.ts";

/** One volume below its heading. Source: kubectl's `describeVolumes`. @param ofTemplate as for containers */
export function describeVolume(out: Description, volume: Volume, ofTemplate = false): void {
  out.heading(1, `${ofTemplate ? " " : ""}${volume.name}`);
  const { emptyDir, hostPath, secret, configMap, nfs, persistentVolumeClaim, downwardAPI, projected, image } = volume;
  const type = (text: string) => out.field(2, "Type", text);
  if (emptyDir) {
    type("EmptyDir (a temporary directory that shares a pod's lifetime)");
    out.field(2, "Medium", emptyDir.medium ?? "");
    out.field(2, "SizeLimit", emptyDir.sizeLimit ?? "<unset>");
  } else if (hostPath) {
    type("HostPath (bare host directory volume)");
    out.field(2, "Path", hostPath.path);
    out.field(2, "HostPathType", hostPath.type ?? "");
  } else if (secret) {
    type("Secret (a volume populated by a Secret)");
    out.field(2, "SecretName", secret.secretName ?? "");
    out.field(2, "Optional", String(secret.optional ?? false));
  } else if (configMap) {
    type("ConfigMap (a volume populated by a ConfigMap)");
    out.field(2, "Name", configMap.name ?? "");
    out.field(2, "Optional", String(configMap.optional ?? false));
  } else if (nfs) {
    type("NFS (an NFS mount that lasts the lifetime of a pod)");
    out.field(2, "Server", nfs.server);
    out.field(2, "Path", nfs.path);
    out.field(2, "ReadOnly", String(nfs.readOnly ?? false));
  } else if (persistentVolumeClaim) {
    type("PersistentVolumeClaim (a volume of the Docker engine)");
    out.field(2, "ClaimName", persistentVolumeClaim.claimName);
    out.field(2, "ReadOnly", String(persistentVolumeClaim.readOnly ?? false));
  } else if (downwardAPI) {
    type("DownwardAPI (a volume populated by information about the pod)");
    describeItems(out, downwardAPI.items ?? []);
  } else if (projected) {
    type("Projected (a volume that contains injected data from multiple sources)");
    for (const source of projected.sources) describeProjection(out, source);
  } else if (image) {
    type("Image (a container image or OCI artifact)");
    out.field(2, "Reference", image.reference ?? "");
    out.field(2, "PullPolicy", image.pullPolicy ?? "");
  } else {
    type(Object.keys(volume).find((name) => name !== "name") ?? "EmptyDir");
  }
}

function describeItems(out: Description, items: readonly DownwardAPIVolumeFile[]): void {
  out.heading(2, "Items");
  for (const { fieldRef, resourceFieldRef, path } of items) {
    out.line(3, `${fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? ""} -> ${path}`);
  }
}

function describeProjection(out: Description, source: VolumeProjection): void {
  const { secret, configMap, downwardAPI, serviceAccountToken } = source;
  if (secret) {
    out.field(2, "SecretName", secret.name ?? "");
    out.field(2, "Optional", String(secret.optional ?? false));
  } else if (configMap) {
    out.field(2, "ConfigMapName", configMap.name ?? "");
    out.field(2, "Optional", String(configMap.optional ?? false));
  } else if (downwardAPI) {
    out.field(2, "DownwardAPI", "true");
  } else if (serviceAccountToken) {
    out.field(2, "TokenExpirationSeconds", serviceAccountToken.expirationSeconds);
  } else {
    out.field(2, "Source", Object.keys(source)[0] ?? "");
  }
}
