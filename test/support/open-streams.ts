/**
 * A process with 300 open streams of events of a container, as `bun test/support/open-streams.ts SOCKET CONTAINER`. It ends with
 * 0 when a ping is not held up by them. A process of its own: Bun reads the limit of open fetches when it starts.
 */
import { DockerClient } from "../../src/docker/engine/docker-client.ts";

const [path = "", container = ""] = process.argv.slice(2);
const client = new DockerClient({ kind: "unix", path });
const stop = new AbortController();
const opened: Promise<void>[] = [];
const reading = Array.from({ length: 300 }, async () => {
  const open = Promise.withResolvers<void>();
  opened.push(open.promise);
  const options = { signal: stop.signal, filters: { container: [container] }, onOpen: open.resolve };
  for await (const _ of client.events(options));
});
await Promise.all(opened);
await client.ping({ timeoutMs: 20_000 });
stop.abort();
await Promise.all(reading);
