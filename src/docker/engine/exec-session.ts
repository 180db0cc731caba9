import type { ProcessSession, StreamSelection } from "../../base/model/container-access.ts";
import type { ContainerCalls } from "./container-calls.ts";
import type { Schedule } from "./deadline.ts";
import { exitCodeOf, killExec } from "./exec.ts";
import type { HijackedConnection } from "./hijacked-connection.ts";
import { demultiplex, type OutputChunk, rawOutput } from "./stream-frames.ts";

type ExecHolder = Pick<ContainerCalls, "execCreate" | "execHold" | "execResize" | "execInspect" | "killExecProcesses">;

/**
 * Starts a command and holds its streams. `close` kills the command if it still runs: nothing else would end it
 * (kubernetes#26895).
 * @throws DockerError 404 no such container, 409 not running or paused; DockerUnreachableError
 */
export async function openExecSession(
  calls: ExecHolder,
  id: string,
  argv: readonly string[],
  streams: StreamSelection,
  schedule: Schedule,
): Promise<ProcessSession> {
  const execId = await calls.execCreate(id, argv, { streams });
  const connection = await calls.execHold(execId, streams.tty);
  let hasEnded = false;
  let closing: Promise<void> | undefined;
  return {
    ...held(connection, streams),
    output: noteEnd(outputOf(connection, streams.tty), () => {
      hasEnded = closing === undefined;
    }),
    resize: (size) => calls.execResize(execId, size),
    exitCode: () => exitCodeOf(calls, execId, schedule),
    close: () => {
      connection.close();
      closing ??= hasEnded ? Promise.resolve() : killExec(calls, execId, schedule);
      return closing;
    },
  };
}

type ContainerHolder = Pick<ContainerCalls, "attachContainer" | "resizeContainer">;

/**
 * Holds the streams of a container's own process, which continues when they are released.
 * @param streams.tty whether the container has a terminal
 */
export async function openAttachSession(
  calls: ContainerHolder,
  id: string,
  streams: StreamSelection,
): Promise<ProcessSession> {
  const connection = await calls.attachContainer(id, streams);
  return {
    ...held(connection, streams),
    output: outputOf(connection, streams.tty),
    resize: (size) => calls.resizeContainer(id, size),
    exitCode: async () => undefined,
    close: async () => connection.close(),
  };
}

function held(connection: HijackedConnection, { stdin }: StreamSelection) {
  return {
    write: async (data: Uint8Array) => {
      if (stdin) await connection.write(data);
    },
    endInput: () => {
      if (stdin) connection.endInput();
    },
  };
}

const outputOf = (connection: HijackedConnection, tty: boolean) =>
  tty ? rawOutput(connection.chunks()) : demultiplex(connection.chunks());

async function* noteEnd(chunks: AsyncIterable<OutputChunk>, onEnd: () => void): AsyncGenerator<OutputChunk> {
  yield* chunks;
  onEnd();
}
