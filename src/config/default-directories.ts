import { homedir } from "node:os";
import { join } from "node:path";

/**
 * The directories of the machine for root, as upstream; for another user directories of that user, by the XDG Base
 * Directory Specification. Pure.
 * @param uid undefined where users have no numbers
 */
export function defaultDirectories(
  uid: number | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
) {
  if (uid === undefined || uid === 0) {
    return { rootDir: "/var/lib/kubelet", podLogsDir: "/var/log/pods", containersLogsDir: "/var/log/containers" };
  }
  const given = environment.XDG_DATA_HOME;
  // The specification ignores relative paths.
  const rootDir = join(given?.startsWith("/") ? given : join(home, ".local/share"), "kubelet-ts");
  return { rootDir, podLogsDir: join(rootDir, "log/pods"), containersLogsDir: join(rootDir, "log/containers") };
}

/** Directories of the user that runs this process. */
export const DEFAULT_DIRECTORIES = defaultDirectories(process.getuid?.(), process.env, homedir());
