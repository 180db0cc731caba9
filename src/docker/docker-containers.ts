import type {
  CommandOptions,
  CommandResult,
  ContainerAccess,
  LogSelection,
  OutputChunk,
  ProcessSession,
  StreamSelection,
} from "../base/model/container-access.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { demultiplex, exitCodeOf, killExec, rawOutput } from "./engine/docker-connection.ts";
import type { HijackedConnection, Schedule } from "./engine/transport.ts";

const TAIL_BYTES = 64 * 1024;
const TAIL_MS = 10_000;

/** Logs, commands and streams of containers, from Docker. */
export class DockerContainers implements ContainerAccess {
  readonly #client: DockerClient;
  readonly #schedule: Schedule;

  constructor(client: DockerClient, schedule: Schedule) {
    this.#client = client;
    this.#schedule = schedule;
  }

  async logs(id: ContainerId, selection: LogSelection, signal: AbortSignal): Promise<AsyncIterable<OutputChunk>> {
    const chunks = await this.#client.containerLogs(id, selection, { signal });
    return limited(chunks, selection.limitBytes ?? Number.POSITIVE_INFINITY);
  }

  /** The last lines of a container's log, at most 64 KiB of them, read within 10 s. */
  async logTail(id: ContainerId, lines: number, signal: AbortSignal): Promise<string> {
    const within = AbortSignal.any([signal, AbortSignal.timeout(TAIL_MS)]);
    let tail: Uint8Array = new Uint8Array();
    for await (const { data } of await this.#client.containerLogs(id, { tailLines: lines }, { signal: within })) {
      tail = Buffer.concat([tail, data]).subarray(-TAIL_BYTES);
    }
    return new TextDecoder().decode(tail);
  }

  /** Sends a signal to the main process. */
  signal(id: ContainerId, signal: string): Promise<void> {
    return this.#client.killContainer(id, signal);
  }

  /** Whether the container's own process has a terminal. */
  async hasTerminal(id: ContainerId): Promise<boolean> {
    return (await this.#client.inspectContainer(id)).Config.Tty;
  }

  run(id: ContainerId, argv: readonly string[], options: CommandOptions): Promise<CommandResult> {
    return this.#client.exec(id, argv, options);
  }

  /** Holds the streams of a command. `close` kills it if it still runs: nothing else would (kubernetes#26895). */
  async exec(id: ContainerId, argv: readonly string[], streams: StreamSelection): Promise<ProcessSession> {
    const client = this.#client;
    // A person waits: an engine that hangs is told after seconds, not after the two minutes of a call.
    await client.ping();
    const execId = await client.execCreate(id, argv, streams);
    const connection = await client.execHold(execId, streams.tty);
    let hasEnded = false;
    let closing: Promise<void> | undefined;
    return {
      ...held(connection, streams),
      output: noteEnd(outputOf(connection, streams.tty), () => {
        hasEnded = closing === undefined;
      }),
      resize: (size) => client.execResize(execId, size),
      exitCode: () => exitCodeOf(client, execId, this.#schedule),
      close: () => {
        connection.close();
        closing ??= hasEnded ? Promise.resolve() : killExec(client, execId, this.#schedule);
        return closing;
      },
    };
  }

  /**
   * Holds the streams of a container's own process, which continues when they are released.
   * @throws Error when the container has ended: the engine would hold the streams until it starts again
   */
  async attach(id: ContainerId, streams: StreamSelection): Promise<ProcessSession> {
    await this.#client.ping();
    const connection = await this.#client.attachContainer(id, streams);
    const isRunning = this.#client.inspectContainer(id).then(({ State }) => State.Running);
    if (!(await isRunning.catch(() => false))) {
      connection.close();
      throw new Error(`container not running (${id})`);
    }
    return {
      ...held(connection, streams),
      output: outputOf(connection, streams.tty),
      resize: (size) => this.#client.resizeContainer(id, size),
      exitCode: async () => undefined,
      close: async () => connection.close(),
    };
  }
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

async function* limited(chunks: AsyncIterable<OutputChunk>, limitBytes: number): AsyncGenerator<OutputChunk> {
  let left = limitBytes;
  for await (const { stream, data } of chunks) {
    yield { stream, data: data.length > left ? data.subarray(0, left) : data };
    left -= data.length;
    if (left <= 0) return;
  }
}
