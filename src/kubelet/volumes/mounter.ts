import { mkdirSync, readdirSync, readlinkSync, realpathSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { readOutput } from "../../base/files/bounded-stream.ts";
import { listMountPoints } from "../../base/files/mount-points.ts";
import { messageOf } from "../../base/text/error-message.ts";

/** Longest time that mount(8) or umount(8) may take; a file system that does not answer holds them up. */
const TIMEOUT_MS = 10_000;

/**
 * Mounts on the host, by mount(8) and umount(8): they are rare, and a program keeps no native code in ours.
 * Works as root only; see {@link canMount}.
 */
export class Mounter {
  /** @param options e.g. `["size=10485760", "mode=1777"]`. */
  async mountFileSystem(type: "tmpfs" | "hugetlbfs", target: string, options: readonly string[]): Promise<void> {
    await run(["mount", "-t", type, ...(options.length > 0 ? ["-o", options.join(",")] : []), type, target]);
  }

  /** A tmpfs for files that are only read, and never swapped out where the kernel knows `noswap` (6.4). */
  async mountSecretFileSystem(target: string, options: readonly string[]): Promise<void> {
    const safe = [...options, "nosuid", "nodev", "noexec"];
    const exit = await spawn(["mount", "-t", "tmpfs", "-o", [...safe, "noswap"].join(","), "tmpfs", target]);
    if (exit.code !== 0) await this.mountFileSystem("tmpfs", target, safe);
  }

  /** Refused by the kernel when more than that is in it. */
  async resizeTmpfs(target: string, bytes: number): Promise<void> {
    await run(["mount", "-o", `remount,size=${bytes}`, target]);
  }

  /**
   * Binds what an open descriptor of this process refers to; the name it was opened by no longer matters. The caller checks
   * afterwards that `target` is the same inode, which holds for any resolution of the path by mount(8).
   */
  async bindDescriptor(descriptor: number, target: string): Promise<void> {
    const source = `/proc/${process.pid}/fd/${descriptor}`;
    const exit = await spawn(["mount", "--no-canonicalize", "--bind", source, target]);
    if (exit.code === 0) return;
    // busybox knows no such option, and does not canonicalize either
    await run(["mount", "--bind", source, target]);
  }

  /**
   * Binds a directory to another path. The kernel takes options of a bind only when it is mounted again.
   * @param options e.g. `["noexec", "ro"]`
   * @throws Error with the output of mount(8); then nothing is mounted
   */
  async bind(source: string, target: string, options: readonly string[]): Promise<void> {
    await run(["mount", "--bind", source, target]);
    try {
      await run(["mount", "-o", ["remount", "bind", ...options].join(","), target]);
    } catch (error) {
      await this.unmount(target);
      throw error;
    }
  }

  /** Unmounts `target`. A target that is not mounted is not an error. */
  async unmount(target: string): Promise<void> {
    let exit = await spawn(["umount", target]);
    // A file system that does not answer is detached; the kernel unmounts it when nothing uses it any more.
    if (exit.isLate) exit = await spawn(["umount", "-l", target]);
    if (exit.code !== 0 && this.listBeneath(target).includes(target)) {
      throw new Error(`umount ${target}: ${exit.errors}`);
    }
  }

  /** Mount points at or beneath one of these directories, as the kernel lists them: the latest and deepest last. */
  listBeneath(...directories: readonly string[]): string[] {
    return listMountPoints().filter((path) => directories.some((top) => path === top || path.startsWith(`${top}/`)));
  }
}

const MOUNT_TEST = ".mount-test-";

/** Removes what a process left in the root directory that was killed during {@link canMount}. */
export async function sweepMountTests(rootDir: string, mounter: Pick<Mounter, "unmount">): Promise<void> {
  for (const name of readdirSync(rootDir)) {
    if (!name.startsWith(MOUNT_TEST)) continue;
    try {
      await mounter.unmount(join(rootDir, name));
      rmdirSync(join(rootDir, name));
    } catch {
      // The next start tries again.
    }
  }
}

/**
 * Whether mounts we make are possible and can be seen by the engine: tried with a real tmpfs under `rootDir`. A private
 * mount namespace (systemd's PrivateTmp and the like) would hide our mounts from dockerd, which would then hand
 * containers the empty directory below, so it counts as no.
 */
export async function canMount(rootDir: string, mounter: Mounter): Promise<{ ok: true } | { ok: false; why: string }> {
  if (process.getuid?.() !== 0) return { ok: false, why: "not running as root" };
  if (!sharesMountNamespace()) return { ok: false, why: "running in a mount namespace of its own" };
  let target: string | undefined;
  try {
    mkdirSync(rootDir, { recursive: true, mode: 0o750 });
    const root = realpathSync(rootDir);
    await sweepMountTests(root, mounter);
    const path = join(root, `${MOUNT_TEST}${process.pid}`);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    target = path;
    await mounter.mountFileSystem("tmpfs", target, ["size=4096"]);
    await mounter.unmount(target);
    return { ok: true };
  } catch (error) {
    return { ok: false, why: messageOf(error) };
  } finally {
    if (target !== undefined) rmdirSync(target);
  }
}

function sharesMountNamespace(): boolean {
  try {
    return readlinkSync("/proc/self/ns/mnt") === readlinkSync("/proc/1/ns/mnt");
  } catch {
    return true; // Not known: hidepid or a locked down /proc
  }
}

async function run(command: string[]): Promise<void> {
  const exit = await spawn(command);
  if (exit.code !== 0) throw new Error(`${command.join(" ")}: ${exit.errors}`);
}

async function spawn(command: string[]): Promise<{ code: number; isLate: boolean; errors: string }> {
  try {
    const child = Bun.spawn(command, {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      env: mountEnvironment(),
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    const [code, errors] = await Promise.all([child.exited, readOutput(child.stderr)]);
    const isLate = child.signalCode === "SIGKILL";
    return { code, isLate, errors: isLate ? "the file system does not answer" : errors.trim() || `exit code ${code}` };
  } catch (error) {
    return { code: -1, isLate: false, errors: messageOf(error) };
  }
}

/** A service may run without PATH or without /sbin in it. */
function mountEnvironment(): Record<string, string> {
  const own = process.env.PATH ?? "";
  return { PATH: `${own}${own ? ":" : ""}/usr/sbin:/usr/bin:/sbin:/bin`, LC_ALL: "C" };
}
