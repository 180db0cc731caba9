import { connect, type Socket } from "node:net";

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
