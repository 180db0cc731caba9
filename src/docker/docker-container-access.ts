import type { ContainerAccess, LogSelection, ProcessSession, StreamSelection } from "../base/model/container-access.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { Schedule } from "./engine/deadline.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { openAttachSession, openExecSession } from "./engine/exec-session.ts";

/** Logs and streams of containers, from Docker. */
export class DockerContainerAccess implements ContainerAccess {
  readonly #client: DockerClient;
  readonly #schedule: Schedule;

  constructor(client: DockerClient, schedule: Schedule) {
    this.#client = client;
    this.#schedule = schedule;
  }

  async logs(id: ContainerId, selection: LogSelection, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { tailLines, since, limitBytes, ...rest } = selection;
    const chunks = await this.#client.openContainerLogs(id, {
      ...rest,
      tail: tailLines,
      since: since && (since.getTime() / 1000).toFixed(3),
      signal,
    });
    return limited(chunks, limitBytes ?? Number.POSITIVE_INFINITY);
  }

  run(id: ContainerId, argv: readonly string[], signal: AbortSignal) {
    return this.#client.exec(id, argv, { signal });
  }

  exec(id: ContainerId, argv: readonly string[], streams: StreamSelection): Promise<ProcessSession> {
    return openExecSession(this.#client, id, argv, streams, this.#schedule);
  }

  attach(id: ContainerId, streams: StreamSelection): Promise<ProcessSession> {
    return openAttachSession(this.#client, id, streams);
  }
}

async function* limited(chunks: AsyncIterable<{ data: Uint8Array }>, limitBytes: number): AsyncGenerator<Uint8Array> {
  let left = limitBytes;
  for await (const { data } of chunks) {
    yield data.length > left ? data.subarray(0, left) : data;
    left -= data.length;
    if (left <= 0) return;
  }
}
