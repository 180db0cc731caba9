import { afterEach } from "bun:test";
import { connect, type Socket } from "node:net";

/** Calls what is added after each test. */
export function cleanUps(): { add: (cleanUp: () => unknown) => void } {
  const all: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of all.splice(0)) await cleanUp();
  });
  return { add: (cleanUp) => void all.push(cleanUp) };
}

/** A connection to a server, and what it received. Its errors are of no interest. */
export function aClient(port: number, { text = "", open = () => connect(port, "127.0.0.1") as Socket } = {}) {
  const seen = { text: "", isClosed: false };
  const socket = open();
  socket.write(text);
  socket.on("data", (chunk) => {
    seen.text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    seen.isClosed = true;
  });
  return { socket, seen };
}
