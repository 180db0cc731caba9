import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ContainerAccess } from "../model/container-access.ts";

/** The first of these that the image has. */
const SHELL = ["/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash || exec sh"];
const MAX_MESSAGE_BYTES = 64 * 1024;
const HIGH_WATER_BYTES = 256 * 1024;

/**
 * A shell in a container over a WebSocket. Binary messages are its input and output; the client sends its size as JSON
 * text, the server says in JSON text how it ended. A client that does not read holds the shell back.
 */
export async function serveShell(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  containerId: string,
  containers: ContainerAccess,
): Promise<void> {
  const { WebSocketServer } = await import("ws");
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false });
  server.handleUpgrade(request, socket, head, (client) => {
    const end = (message: string) => {
      client.send(JSON.stringify({ message }));
      client.close();
    };
    containers.exec(containerId, SHELL, { stdin: true, stdout: true, stderr: false, tty: true }).then(
      async (shell) => {
        client.on("message", (data: Buffer, isBinary: boolean) => {
          if (isBinary) {
            // Input waits for the engine; the client is not read meanwhile.
            client.pause();
            void shell.write(data).then(
              () => client.resume(),
              () => client.close(),
            );
            return;
          }
          const size = parseSize(data.toString());
          if (size) void shell.resize(size).catch(() => {});
        });
        client.on("close", () => void shell.close());
        client.on("error", () => client.terminate());
        try {
          for await (const { data } of shell.output) {
            await new Promise<void>((resolve) => {
              client.send(data, () => resolve());
              if (client.bufferedAmount < HIGH_WATER_BYTES) resolve();
            });
          }
          const exitCode = await shell.exitCode();
          end(exitCode === undefined ? "The shell ended." : `The shell ended with exit code ${exitCode}.`);
        } catch {
          end("The connection to the container was lost.");
        } finally {
          await shell.close();
        }
      },
      (error: Error) => end(`No shell could be started: ${error.message}`),
    );
  });
}

function parseSize(text: string): { width: number; height: number } | undefined {
  try {
    const { width, height } = JSON.parse(text) as { width?: unknown; height?: unknown };
    const isSize = (value: unknown): value is number =>
      Number.isInteger(value) && Number(value) > 0 && Number(value) < 10_000;
    return isSize(width) && isSize(height) ? { width, height } : undefined;
  } catch {
    return undefined;
  }
}
