import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readBoundedText } from "../../files/bounded-read.ts";
import type { DesiredPod } from "../../model/desired-pod.ts";

const MAX_CHECKPOINT_BYTES = 256 * 2 ** 20;

/**
 * The pods of the checkpoints of a root directory: what its kubelet wanted last. Reads what it may and skips the rest,
 * since a checkpoint is a hint.
 */
export function readKeptPods(rootDir: string): DesiredPod[] {
  const directory = join(rootDir, "checkpoints");
  try {
    return readdirSync(directory)
      .filter((name) => name.startsWith("source-") && name.endsWith(".json"))
      .flatMap((name) => podsOf(join(directory, name)));
  } catch {
    return [];
  }
}

function podsOf(path: string): DesiredPod[] {
  try {
    const { body } = JSON.parse(readBoundedText(path, MAX_CHECKPOINT_BYTES)) as {
      body: { texts: Record<string, { pods: DesiredPod[] }> };
    };
    return Object.values(body.texts).flatMap(({ pods }) => pods);
  } catch {
    return [];
  }
}
