import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import type { Readable, Writable } from "node:stream";
import { writeTo } from "../files/bounded-stream.ts";
import { type PodAddress, type PodConnection, RELAY_ARGUMENT } from "../model/pod-dialer.ts";
import { isOfContainer } from "./process-sample.ts";

const CONNECT_MS = 10_000;

/**
 * Connects to a port of a pod: at its address or, where no process listens there, on its loopback, for which nsenter
 * runs our program in the pod's network as a relay.
 */
export async function dialPod(address: PodAddress, port: number, signal: AbortSignal): Promise<PodConnection> {
  try {
    return await dial(address.hostNetwork ? "127.0.0.1" : address.ip, port, signal);
  } catch (error) {
    const isRefused = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
    if (!isRefused || address.hostNetwork || !isSandbox(address)) throw error;
    return relay(address.sandboxPid, port, error as Error);
  }
}

function dial(host: string, port: number, signal: AbortSignal): Promise<PodConnection> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = connect({ host, port, allowHalfOpen: true });
    const stop = () => void socket.destroy(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    socket.setTimeout(CONNECT_MS, () => {
      socket.destroy(Object.assign(new Error(`connect ETIMEDOUT ${host}:${port}`), { code: "ETIMEDOUT" }));
    });
    socket.once("error", reject);
    socket.once("close", () => signal.removeEventListener("abort", stop));
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", reject);
      socket.on("error", () => {});
      resolve({
        chunks: () => socket,
        write: (data) => writeTo(socket, data),
        end: () => void socket.end(),
        close: () => void socket.destroy(),
      });
    });
  });
}

/** Whether the pid is still, and here, that of the pod's sandbox: the engine may be on another machine. */
function isSandbox({ sandboxPid, sandboxId }: PodAddress): boolean {
  return sandboxPid > 1 && sandboxId.length >= 64 && isOfContainer(sandboxPid, sandboxId);
}

/** Each is two processes. */
const MAX_RELAYS = 32;
let relays = 0;

/** @param refusal thrown when no process listens on the loopback either */
function relay(pid: number, port: number, refusal: Error): PodConnection {
  if (relays >= MAX_RELAYS) throw new Error(`${MAX_RELAYS} connections lead to loopbacks of pods: close one first`);
  relays++;
  const args = [`--net=/proc/${pid}/ns/net`, "--", process.execPath, RELAY_ARGUMENT, String(port)];
  const child = spawn("nsenter", args, { stdio: ["pipe", "pipe", "ignore"], env: { PATH: process.env.PATH ?? "" } });
  const { stdin, stdout } = child;
  const ended = new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(1));
    child.once("close", resolve);
  });
  void ended.then(() => relays--);
  stdin.on("error", () => {});
  return {
    chunks: async function* () {
      let bytes = 0;
      for await (const chunk of stdout) {
        bytes += (chunk as Uint8Array).length;
        yield chunk as Uint8Array;
      }
      if ((await ended) !== 0 && bytes === 0) throw refusal;
    },
    write: (data) => writeTo(stdin, data),
    end: () => void stdin.end(),
    close: () => {
      stdin.destroy();
      child.kill("SIGKILL");
    },
  };
}

/** The relay: copies `input` to a port of the loopback and back to `output`. @returns 1 when no process listens */
export async function relayLoopback(port: number, input: Readable, output: Writable): Promise<number> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  try {
    await once(socket, "connect");
  } catch {
    return 1;
  }
  input.pipe(socket);
  socket.on("error", () => {});
  output.on("error", () => socket.destroy());
  try {
    for await (const chunk of socket) await writeTo(output, chunk as Uint8Array);
    await new Promise<void>((resolve) => output.end(resolve));
  } catch {
    // The listener has closed the connection.
  }
  return 0;
}
