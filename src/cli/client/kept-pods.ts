import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ConfigMap } from "../../api/config-map.ts";
import type { Secret } from "../../api/secret.ts";
import { readBoundedText } from "../../files/bounded-read.ts";
import type { DesiredPod } from "../../model/desired-pod.ts";

const MAX_CHECKPOINT_BYTES = 256 * 2 ** 20;

/** Desired objects of the last run of a kubelet. */
export interface KeptObjects {
  pods: DesiredPod[];
  configMaps: ConfigMap[];
  secrets: Secret[];
}

/** Reads the checkpoints of a root directory. What cannot be read is left out, since a checkpoint is a hint. */
export function readKeptObjects(rootDir: string): KeptObjects {
  const all = checkpointsOf(join(rootDir, "checkpoints")).flatMap(textsOf);
  return {
    pods: all.flatMap(({ pods = [] }) => pods),
    configMaps: all.flatMap(({ configMaps = [] }) => configMaps),
    secrets: all.flatMap(({ secrets = [] }) => secrets),
  };
}

export const readKeptPods = (rootDir: string): DesiredPod[] => readKeptObjects(rootDir).pods;

function checkpointsOf(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.startsWith("source-") && name.endsWith(".json"))
      .map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function textsOf(path: string): Partial<KeptObjects>[] {
  try {
    const { body } = JSON.parse(readBoundedText(path, MAX_CHECKPOINT_BYTES)) as {
      body: { texts: Record<string, Partial<KeptObjects>> };
    };
    return Object.values(body.texts);
  } catch {
    return [];
  }
}
