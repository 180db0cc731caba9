import type { DockerClient } from "./engine/docker-client.ts";

const MAX_BYTES = 64 * 1024;
const MAX_MS = 10_000;

/**
 * The last lines of a container's log, at most 64 KiB of them, read within 10 s.
 * @throws what the client throws; the signal's reason
 */
export async function readLogTail(
  client: DockerClient,
  id: string,
  lines: number,
  signal: AbortSignal,
): Promise<string> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)]);
  let tail: Uint8Array = new Uint8Array();
  for await (const { data } of client.containerLogs(id, { tail: lines, signal: within })) {
    tail = Buffer.concat([tail, data]).subarray(-MAX_BYTES);
  }
  return new TextDecoder().decode(tail);
}
