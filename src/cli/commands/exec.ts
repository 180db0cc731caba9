import type { ProcessSession } from "../../base/model/container-access.ts";
import { chooseRunningContainer } from "../client/choose-container.ts";
import { runSession } from "../client/terminal-session.ts";
import type { CommandIo } from "../command-io.ts";
import { type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts exec`: runs a command in a container. Returns the command's exit code. */
export async function runExec(request: CommandRequest, io: CommandIo): Promise<number> {
  const [pod, ...argv] = request.positionals;
  if (pod === undefined) throw new UsageError("name a pod and a command: exec POD -- COMMAND");
  if (argv.length === 0) throw new UsageError(`name the command to run: exec ${pod} -- COMMAND`);
  const { streams: container, note } = await chooseRunningContainer(request, pod);
  if (note) io.stderr(`${note}\n`);
  const streams = streamsOf(request, io);
  return (await hold(() => container.exec(argv, streams), streams, io)) ?? 1;
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
  await hold(() => container.attach(streams), streams, io);
  return 0;
}

/** A terminal has one output, so there is no standard error with it. Without a local one there is none, as with kubectl. */
function streamsOf({ isOn }: CommandRequest, io: CommandIo) {
  const isWanted = isOn("tty") && isOn("stdin");
  const tty = isWanted && process.stdin.isTTY === true;
  if (isWanted && !tty) io.stderr("Unable to use a TTY - input is not a terminal\n");
  return { stdin: isOn("stdin"), stdout: true, stderr: !tty, tty };
}

async function hold(
  open: () => Promise<ProcessSession>,
  streams: { stdin: boolean; tty: boolean },
  io: CommandIo,
): Promise<number | undefined> {
  return await runSession(await open(), streams, {
    stdin: process.stdin,
    stdout: process.stdout,
    writeStdout: io.stdout,
    writeStderr: (data) => io.stderr(Buffer.from(data).toString("utf8")),
  });
}
