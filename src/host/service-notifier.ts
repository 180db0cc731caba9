import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { libcPath } from "./libc.ts";

/** Sends one message of the sd_notify protocol. @throws Error when the service manager does not take it */
export type SendNotification = (message: string) => Promise<void>;

export interface ServiceNotifierDeps {
  clock: Clock;
  logger: Logger;
  /** As the process was started: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
  environment: Readonly<Record<string, string | undefined>>;
  /** For tests; the default is a datagram to NOTIFY_SOCKET. */
  send?: SendNotification;
}

/**
 * Tells systemd how the service is doing: READY, STATUS, WATCHDOG, STOPPING (Type=notify). Does nothing where no service
 * manager asked for it. The watchdog is fed from the event loop, so a process whose loop hangs is restarted; pods keep
 * running meanwhile.
 */
export class ServiceNotifier {
  readonly #deps: ServiceNotifierDeps;
  readonly #send: SendNotification | undefined;
  #status = "";
  #cancelWatchdog: (() => void) | undefined;

  constructor(deps: ServiceNotifierDeps) {
    this.#deps = deps;
    const { NOTIFY_SOCKET } = deps.environment;
    this.#send = NOTIFY_SOCKET ? (deps.send ?? ((message) => sendDatagram(NOTIFY_SOCKET, message))) : undefined;
  }

  /** Whether a service manager wants to be told. */
  get isWanted(): boolean {
    return this.#send !== undefined;
  }

  /** Half of WATCHDOG_USEC, in milliseconds; undefined when systemd does not watch this process. */
  get watchdogPeriodMs(): number | undefined {
    const { WATCHDOG_USEC, WATCHDOG_PID } = this.#deps.environment;
    if (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== process.pid) return undefined;
    const ms = Number(WATCHDOG_USEC) / 2000;
    return ms > 0 ? ms : undefined;
  }

  /** The service is started. Begins to feed the watchdog. */
  async ready(): Promise<void> {
    await this.#notify("READY=1");
    const periodMs = this.watchdogPeriodMs;
    if (!this.#send || periodMs === undefined) return;
    const feed = () => {
      void this.#notify("WATCHDOG=1");
      this.#cancelWatchdog = this.#deps.clock.schedule(periodMs, feed);
    };
    feed();
  }

  /** One line that `systemctl status` shows. Sent when it changes. */
  async status(line: string): Promise<void> {
    if (line === this.#status) return;
    this.#status = line;
    await this.#notify(`STATUS=${line.replaceAll("\n", " ").slice(0, 500)}`);
  }

  async stopping(): Promise<void> {
    this.#cancelWatchdog?.();
    this.#cancelWatchdog = undefined;
    await this.#notify("STOPPING=1");
  }

  async #notify(message: string): Promise<void> {
    try {
      await this.#send?.(message);
    } catch (error) {
      this.#deps.logger.warn("The service manager could not be notified", {
        message: message.split("=")[0] ?? "",
        error: (error as Error).message,
      });
    }
  }
}

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL = 0x4000;
/** Room for the path in `sockaddr_un`. */
const MAX_PATH_BYTES = 107;

/**
 * Bun has no Unix datagram sockets: the C library sends it, and systemd-notify(1) where Bun may not make code executable.
 * @param socket path, or `@name` in the abstract namespace
 * @throws Error
 */
export async function sendDatagram(socket: string, message: string): Promise<void> {
  const path = Buffer.from(socket.replace(/^@/, "\0"));
  if (path.length > MAX_PATH_BYTES) throw new Error(`NOTIFY_SOCKET is longer than ${MAX_PATH_BYTES} bytes`);
  let library: typeof import("bun:ffi") | undefined;
  try {
    library = await import("bun:ffi");
    sendByCall(library, path, message);
  } catch (error) {
    if (error instanceof DeliveryError) throw error;
    sendByProgram(socket, message, error as Error);
  }
}

class DeliveryError extends Error {}

function sendByCall({ dlopen, FFIType }: typeof import("bun:ffi"), path: Buffer, message: string): void {
  const { i32, u32, u64, i64, ptr } = FFIType;
  const { symbols, close } = dlopen(libcPath(), {
    socket: { args: [i32, i32, i32], returns: i32 },
    sendto: { args: [i32, ptr, u64, i32, ptr, u32], returns: i64 },
    close: { args: [i32], returns: i32 },
  });
  try {
    // struct sockaddr_un: the family in the machine's byte order (little-endian on every target), then the path.
    const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), path, Buffer.from([0])]);
    const addressLength = 2 + path.length + (path[0] === 0 ? 0 : 1);
    const bytes = Buffer.from(message);
    const descriptor = symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
    if (descriptor < 0) throw new DeliveryError("socket(AF_UNIX, SOCK_DGRAM) failed");
    const sent = symbols.sendto(descriptor, bytes, bytes.length, MSG_NOSIGNAL, address, addressLength);
    symbols.close(descriptor);
    if (Number(sent) !== bytes.length) throw new DeliveryError("nothing receives on NOTIFY_SOCKET");
  } finally {
    close();
  }
}

function sendByProgram(socket: string, message: string, cause: Error): void {
  const program = Bun.which("systemd-notify");
  if (program === null) {
    throw new DeliveryError(`bun:ffi is not available (${cause.message}) and systemd-notify(1) is not installed`);
  }
  const { exitCode } = Bun.spawnSync([program, message], {
    env: { ...process.env, NOTIFY_SOCKET: socket },
    stdio: ["ignore", "ignore", "ignore"],
    timeout: 5000,
  });
  if (exitCode !== 0) throw new DeliveryError(`${program} ended with exit code ${exitCode}`);
}
