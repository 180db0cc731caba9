import type { ProcessSession } from "../../base/model/container-access.ts";
import { chooseRunningContainer } from "../client/container-streams.ts";
import { type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts exec`: runs a command in a container. Returns the command's exit code. */
export async function runExec(request: CommandRequest, io: CommandIo): Promise<number> {
  const [pod, ...argv] = request.positionals;
  if (pod === undefined) throw new UsageError("name a pod and a command: exec POD -- COMMAND");
  if (argv.length === 0) throw new UsageError(`name the command to run: exec ${pod} -- COMMAND`);
  const { streams: container, note } = await chooseRunningContainer(request, pod);
  if (note) io.stderr(`${note}\n`);
  // A terminal has one output, so there is no standard error with it. Without a local one there is none, as with kubectl.
  const isWanted = request.isOn("tty") && request.isOn("stdin");
  const tty = isWanted && process.stdin.isTTY === true;
  if (isWanted && !tty) io.stderr("Unable to use a TTY - input is not a terminal\n");
  const streams = { stdin: request.isOn("stdin"), stdout: true, stderr: !tty, tty };
  const { exitCode = 1, head } = await hold(await container.exec(argv, streams), streams, io);
  const hint = exitCode === 0 ? undefined : describeMissingCommand(head);
  if (hint !== undefined) io.stderr(`${hint}\n`);
  return exitCode;
}

/** The hint for a program that the image lacks: the engine sends its message as the output of the command. */
export function describeMissingCommand(output: string): string | undefined {
  const failure = /^OCI runtime exec failed: .*exec: "([^"]*)": (?:executable file not found|stat .*no such file)/;
  const command = failure.exec(output)?.[1];
  if (command === undefined) return undefined;
  const name = command.slice(command.lastIndexOf("/") + 1);
  if (name === "sh") return `"${command}" is not in the image, which may have no shell: name a program that it has`;
  const isShell = /^(?:ba|z|a|da|k|c|fi)sh$/.test(name);
  return `"${command}" is not in the image: ${isShell ? "try sh instead" : "name a program that it has"}`;
}

/** `kubelet-ts attach`: holds the streams of a container's own process, which continues afterwards. */
export async function runAttach(request: CommandRequest, io: CommandIo): Promise<number> {
  const [pod, ...others] = request.positionals;
  if (pod === undefined) throw new UsageError("name a pod");
  if (others.length > 0) throw new UsageError(`attach takes one pod (found also "${others.join('", "')}")`);
  const { streams: container, note } = await chooseRunningContainer(request, pod);
  if (note) io.stderr(`${note}\n`);
  // The container determines whether there is a terminal; the command line cannot.
  const tty = await container.hasTerminal();
  const streams = { stdin: request.isOn("stdin"), stdout: true, stderr: !tty, tty };
  await hold(await container.attach(streams), streams, io);
  return 0;
}

/**
 * Connects a process in a container with this process's streams until it ends. With a terminal on both sides the local
 * one is in raw mode: keys such as Ctrl-C reach the container, and its size follows the window.
 * @returns its exit code, undefined when it is not known, as for an attached container; and its first output
 */
async function hold(
  session: ProcessSession,
  { stdin: wantsStdin, tty }: { stdin: boolean; tty: boolean },
  io: CommandIo,
): Promise<{ exitCode: number | undefined; head: string }> {
  let head: string | undefined;
  const { stdin, stdout } = process;
  const isRaw = tty && wantsStdin && stdin.isTTY === true;
  const onResize = () => {
    // A process that has ended has no terminal any more.
    void session.resize({ width: stdout.columns || 80, height: stdout.rows || 24 }).catch(() => {});
  };
  const onSignal = () => {
    void session.close().finally(() => process.exit(130));
  };
  try {
    if (isRaw) stdin.setRawMode(true);
    if (tty && stdout.isTTY) {
      onResize();
      stdout.on("resize", onResize);
    }
    process.once("SIGINT", onSignal);
    process.once("SIGTERM", onSignal);
    if (wantsStdin) void forward(stdin, session);
    else session.endInput();
    for await (const { stream, data } of session.output) {
      head ??= Buffer.from(data).toString("utf8");
      if (stream === "stderr") io.stderr(Buffer.from(data).toString("utf8"));
      else io.stdout(data);
    }
    return { exitCode: await session.exitCode(), head: head ?? "" };
  } finally {
    stdout.off("resize", onResize);
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
    if (isRaw) stdin.setRawMode(false);
    stdin.pause();
    await session.close();
  }
}

/** Sends input until its end, or until the session has ended. */
async function forward(stdin: AsyncIterable<unknown>, session: ProcessSession): Promise<void> {
  try {
    for await (const chunk of stdin) await session.write(chunk as Uint8Array);
    session.endInput();
  } catch {
    // The session reports its own end.
  }
}
