import { basename } from "node:path";
import type { Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import { withRequests } from "../../base/api/pod-requests.ts";
import { readNodeName } from "../../base/host/node-info.ts";
import { podTemplateOf } from "../../base/model/desired-state.ts";
import type { Finding } from "../../base/model/finding.ts";
import { encryptionOf } from "../../base/text/age-text.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import type { ManifestResult, ReadManifestOptions } from "../../manifest/object-reading.ts";
import { readManifest, refuseManifest } from "../../manifest/read-manifest.ts";
import { looksLikeManifest, readManifests } from "../../sources/manifest-files.ts";

/** Manifests that are configured. */
interface ManifestFiles {
  paths: string[];
  findings: Finding[];
  /** Paths that cannot be read, with the reason. */
  unreadable: { path: string; message: string }[];
  pods: number;
  /** Those of pods, and the templates of workloads. */
  specs: Pick<Pod, "metadata" | "spec">[];
  /** Secrets by full name. */
  secrets: Map<string, Secret>;
}

/** Reads an encrypted manifest. */
export type ReadEncrypted = (bytes: Uint8Array, how: ReadManifestOptions) => Promise<ManifestResult>;

/**
 * Reads the manifests of `--pod-manifest-path`, as the kubelet does; those of URLs are only named.
 * @param decrypt absent: an encrypted one is a finding
 */
export async function readManifestFiles(options: KubeletOptions, decrypt?: ReadEncrypted): Promise<ManifestFiles> {
  const result: ManifestFiles = {
    paths: [...options.podManifestPaths, ...options.manifestUrls],
    findings: [],
    unreadable: [],
    pods: 0,
    specs: [],
    secrets: new Map(),
  };
  const nodeName = readNodeName(options.hostnameOverride);
  for (const path of options.podManifestPaths) {
    const { listing, contents } = readManifests(path, new Map());
    const howOf = (file: string): ReadManifestOptions => ({
      file,
      nodeName,
      source: "file",
      strictness: options.validate,
      allowPrivileged: options.allowPrivileged,
    });
    const refuse = (file: string, message: string) => addManifest(result, refuseManifest(howOf(file), message));
    if ("message" in listing) result.unreadable.push({ path, message: listing.message });
    for (const [file, content] of contents) {
      if (content.kind === "unreadable") refuse(file, content.message);
      if (content.kind === "dangling") refuse(file, "its symbolic link leads nowhere");
      if (content.kind !== "content") continue;
      const { bytes } = content;
      if (listing.kind === "directory" && !looksLikeManifest(basename(file), bytes)) continue;
      const read = encryptionOf(bytes) && decrypt ? decrypt : readManifest;
      addManifest(result, await read(bytes, howOf(file)));
    }
  }
  return result;
}

function addManifest(result: ManifestFiles, { pods, findings, secrets, objects }: ManifestResult): void {
  result.findings.push(...findings);
  result.pods += pods.length;
  result.specs.push(...pods.map(({ pod }) => pod));
  for (const desired of objects) {
    const template = podTemplateOf(desired);
    const { namespace = "default" } = desired.object.metadata;
    if (template) result.specs.push({ ...withRequests(template), metadata: { ...template.metadata, namespace } });
  }
  for (const secret of secrets) {
    result.secrets.set(`${secret.metadata.namespace ?? "default"}/${secret.metadata.name}`, secret);
  }
}
