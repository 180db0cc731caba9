import { afterAll } from "bun:test";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canMount, Mounter } from "../../src/kubelet/volumes/mounter.ts";

const mounter = new Mounter();

/**
 * Gives a test file its maker of empty directories (by their real paths). They are removed, and what is mounted in them
 * unmounted, after the file's tests. To be called at the top of each file: the hook belongs to the file that calls.
 */
export function tempDirs(): () => string {
  const made: string[] = [];
  afterAll(async () => {
    for (const directory of made.splice(0)) await remove(directory);
  });
  return () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "kubelet-ts-test-")));
    made.push(directory);
    return directory;
  };
}

async function remove(directory: string): Promise<void> {
  for (const target of mounter.listBeneath(directory).reverse()) await mounter.unmount(target);
  rmSync(directory, { recursive: true, force: true });
}

export const isRoot = process.getuid?.() === 0;

/** Whether tests can mount; those that need it are skipped otherwise, which is said here, once. */
export const mounting = await tryMounting();
if (!mounting.ok) console.warn(`tests that mount are skipped: ${mounting.why}`);

async function tryMounting() {
  const directory = mkdtempSync(join(tmpdir(), "kubelet-ts-test-"));
  const outcome = await canMount(directory, mounter);
  await remove(realpathSync(directory));
  return outcome;
}
