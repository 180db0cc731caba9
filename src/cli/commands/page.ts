import { readPageSecret } from "../../pageserver/page-secret.ts";
import { createLoginToken } from "../../pageserver/page-session.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, openKubelet, UsageError } from "../sub-command.ts";

/** `kubelet-ts page [--open]`: a link with a one-time token. Returns the exit code. */
export async function runPage(request: CommandRequest, io: CommandIo): Promise<number> {
  const [first] = request.positionals;
  if (first !== undefined) throw new UsageError(`takes no arguments (found "${first}")`);
  if (request.value("server")) throw new UsageError("needs the kubelet's root directory: use --root-dir, not --server");
  const { kubelet } = await openKubelet(request);
  const { pageUrl, rootDir = "" } = kubelet.instance ?? {};
  if (!pageUrl) throw new CommandError("the kubelet does not serve the page: start it with --cadvisor-port=4194");
  const link = `${pageUrl}/#token=${createLoginToken(readSecret(rootDir), io.now().getTime())}`;
  if (request.isOn("open") && (await opens(link))) return 0;
  io.stdout(`${link}\n`);
  return 0;
}

function readSecret(rootDir: string): Buffer {
  try {
    return readPageSecret(rootDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandError(
      code === "EACCES"
        ? `only the user that runs the kubelet on "${rootDir}", usually root, can log in: use sudo`
        : message,
    );
  }
}

/** Whether the desktop took the link. */
async function opens(link: string): Promise<boolean> {
  try {
    const child = Bun.spawn(["xdg-open", link], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return (await child.exited) === 0;
  } catch {
    return false;
  }
}
