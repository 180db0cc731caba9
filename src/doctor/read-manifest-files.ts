import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../api/pod.ts";
import type { Secret } from "../api/secret.ts";
import { readTextIfExists } from "../files/bounded-read.ts";
import { readNodeName } from "../host/node-info.ts";
import { readManifest } from "../manifest/read-manifest.ts";
import type { TypedObject } from "../model/desired-object.ts";
import type { Finding } from "../model/finding.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import { messageOf } from "../text/error-message.ts";

const MAX_MANIFEST_BYTES = 10 << 20;

/** Manifests that are configured. */
export interface ManifestFiles {
  paths: string[];
  findings: Finding[];
  pods: number;
  /** Those of pods, and the templates of workloads. */
  specs: Pick<Pod, "metadata" | "spec">[];
  /** Secrets by full name. */
  secrets: Map<string, Secret>;
}

/** Reads the manifests of `--pod-manifest-path`; those of URLs are only named. */
export function readManifestFiles(options: KubeletOptions): ManifestFiles {
  const result: ManifestFiles = {
    paths: [...options.podManifestPaths, ...options.manifestUrls],
    findings: [],
    pods: 0,
    specs: [],
    secrets: new Map(),
  };
  const nodeName = readNodeName(options.hostnameOverride);
  for (const file of options.podManifestPaths.flatMap(filesOf)) {
    let text: string | undefined;
    try {
      text = readTextIfExists(file, MAX_MANIFEST_BYTES);
    } catch (error) {
      result.findings.push(unreadable(file, messageOf(error)));
      continue;
    }
    if (text === undefined) {
      result.findings.push(unreadable(file, "there is no such file or directory"));
      continue;
    }
    const { pods, findings, secrets, objects } = readManifest(new TextEncoder().encode(text), {
      file,
      nodeName,
      source: "file",
      strictness: options.validate,
      allowPrivileged: options.allowPrivileged,
    });
    result.findings.push(...findings);
    result.pods += pods.length;
    result.specs.push(...pods.map(({ pod }) => pod), ...objects.flatMap(templatesOf));
    for (const secret of secrets) {
      result.secrets.set(`${secret.metadata.namespace ?? "default"}/${secret.metadata.name}`, secret);
    }
  }
  return result;
}

/** The pod template of a workload; none for other kinds. */
function templatesOf({ kind, object }: TypedObject): Pick<Pod, "metadata" | "spec">[] {
  const template =
    kind === "CronJob"
      ? object.spec.jobTemplate.spec.template
      : "spec" in object && "template" in object.spec
        ? object.spec.template
        : undefined;
  const { namespace = "default" } = object.metadata;
  return template ? [{ metadata: { ...template.metadata, namespace }, spec: template.spec }] : [];
}

const unreadable = (file: string, message: string): Finding => ({
  code: "invalid",
  severity: "error",
  file,
  document: 1,
  line: 1,
  column: 1,
  field: "",
  message,
});

function filesOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ya?ml|json)$/.test(entry.name) && !entry.name.startsWith("."))
      .map(({ name }) => join(path, name));
  } catch {
    // A file, or a path that is reported when it is read.
    return [path];
  }
}
