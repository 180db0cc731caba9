import { statSync } from "node:fs";
import { basename, dirname, posix, resolve } from "node:path";
import { readOutput } from "../../base/files/bounded-stream.ts";
import { loadLibc } from "../../base/host/libc.ts";
import { type ChosenContainer, chooseRunningContainer } from "../client/container-streams.ts";
import { CommandError, type CommandIo, type CommandRequest, replaceablePath, UsageError } from "../sub-command.ts";

const MAX_ERROR_BYTES = 4096;
/** Source: prctl(2), capabilities(7). */
const PR_CAPBSET_DROP = 24;
const CAP_MKNOD = 27;

/** `kubelet-ts cp`: copies files and directories with tar, which the image must have. Returns the exit code. */
export async function runCopy(request: CommandRequest, io: CommandIo): Promise<number> {
  const [from, to, ...others] = request.positionals.map(parseCopyPath);
  if (!from || !to || others.length > 0)
    throw new UsageError("cp takes a source and a destination: cp web:/etc/hosts .");
  if ((from.pod === undefined) === (to.pod === undefined)) {
    throw new UsageError("one side is POD:PATH, the other one a local path");
  }
  const [pod = "", namespace] = (from.pod ?? to.pod ?? "").split("/").toReversed();
  const chosen = await chooseRunningContainer(namespace === undefined ? request : inNamespace(request, namespace), pod);
  if (chosen.note) io.stderr(`${chosen.note}\n`);
  if (from.pod === undefined) await upload(chosen, from.path, to.path);
  else await download(chosen, from.path, to.path);
  return 0;
}

/** `prod/web:/path` names the namespace. */
const inNamespace = (request: CommandRequest, namespace: string): CommandRequest => ({
  ...request,
  value: (flag) => (flag === "namespace" ? namespace : request.value(flag)),
});

/** One side of a copy: `web:/path`, `./path`, `/path`. A local path with a colon begins with `./` or `/`. */
export function parseCopyPath(text: string): { pod?: string; path: string } {
  const match = /^([^/.:][^/:]*(?:\/[^/:]+)?):(.*)$/.exec(text);
  if (!match) return { path: text };
  if (match[2] === "") throw new UsageError(`"${text}" names no path: write ${text}/path`);
  return { pod: match[1] ?? "", path: match[2] ?? "" };
}

async function upload(chosen: ChosenContainer, local: string, remote: string): Promise<void> {
  const path = resolve(local);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new CommandError(`"${local}" does not exist`);
  // A directory at the destination takes the source inside, as cp does.
  const isDirectory = remote.endsWith("/") || (await runIn(chosen, ["test", "-d", remote])) === 0;
  const directory = isDirectory ? remote : posix.dirname(remote);
  const name = isDirectory ? basename(path) : posix.basename(remote);
  const argv = ["tar", "-cf", "-", "-C", dirname(path), "--transform", renaming(basename(path), name)];
  const tar = Bun.spawn([...argv, "--", basename(path)], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const session = await open(chosen, ["tar", "-xmf", "-", "-C", directory], true);
  try {
    const output = collect(session);
    for await (const chunk of tar.stdout) await session.write(chunk);
    session.endInput();
    const text = await output;
    await check(tar.exited, await readOutput(tar.stderr), "local tar");
    await check(session.exitCode(), text, `tar in container "${chosen.containerName}"`);
  } finally {
    tar.kill();
    await session.close();
  }
}

async function download(chosen: ChosenContainer, remote: string, local: string): Promise<void> {
  const name = posix.basename(remote);
  const isDirectory = local.endsWith("/") || statSync(local, { throwIfNoEntry: false })?.isDirectory() === true;
  const target = isDirectory ? resolve(local, name) : replaceablePath(local);
  // A container may send other files than those asked for: they are not written. Absolute names and those with `..` are
  // refused by tar, which may make no device, also as root; links are written as they are.
  (await loadLibc().catch(() => undefined))?.prctl(PR_CAPBSET_DROP, CAP_MKNOD, 0, 0, 0);
  const rename = ["--transform", renaming(name, basename(target)), "--", name];
  const argv = ["tar", "-xf", "-", "--no-same-owner", "--no-same-permissions", "-C", dirname(target), ...rename];
  const tar = Bun.spawn(argv, { stdin: "pipe", stdout: "ignore", stderr: "pipe" });
  const session = await open(chosen, ["tar", "-cf", "-", "-C", posix.dirname(remote), name], false);
  let errors = "";
  try {
    for await (const { stream, data } of session.output) {
      if (stream === "stdout") {
        tar.stdin.write(data);
        await tar.stdin.flush();
      } else if (errors.length < MAX_ERROR_BYTES) errors += Buffer.from(data).toString("utf8");
    }
    await tar.stdin.end();
    await check(session.exitCode(), errors, `tar in container "${chosen.containerName}"`);
    await check(tar.exited, await readOutput(tar.stderr), "local tar");
  } finally {
    tar.kill();
    await session.close();
  }
}

/** The expression by which tar gives a file or directory another name; targets of symbolic links stay. */
export function renaming(from: string, to: string): string {
  const pattern = from.replace(/[\\.*^$[\]]/g, "\\$&");
  return `s/^${pattern}/${to.replace(/[\\&]/g, "\\$&")}/S`;
}

async function check(exitCode: Promise<number | undefined>, errors: string, who: string): Promise<void> {
  const code = await exitCode;
  if (code === 0) return;
  const why =
    code === 126 || code === 127
      ? "the image has no tar (for a single file: kubelet-ts exec POD -- cat FILE, exec -i POD -- sh -c 'cat > FILE')"
      : errors.trim() || `exit code ${code}`;
  throw new CommandError(`${who} failed: ${why}`);
}

const open = ({ streams }: ChosenContainer, argv: readonly string[], stdin: boolean) =>
  streams.exec(argv, { stdin, stdout: true, stderr: true, tty: false });

async function runIn(chosen: ChosenContainer, argv: readonly string[]): Promise<number | undefined> {
  const session = await open(chosen, argv, false);
  await collect(session);
  return session.exitCode();
}

async function collect({ output }: { output: AsyncIterable<{ data: Uint8Array }> }): Promise<string> {
  let text = "";
  for await (const { data } of output) if (text.length < MAX_ERROR_BYTES) text += Buffer.from(data).toString("utf8");
  return text;
}
