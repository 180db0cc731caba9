import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { openUnixDatagram } from "./datagram-socket.ts";
import { loadLibc } from "./libc.ts";

/** Sends one message of the sd_notify protocol. @throws Error when the service manager does not take it */
type SendNotification = (message: string) => Promise<void>;

interface ServiceNotifierDeps {
  clock: Clock;
  logger: Logger;
  /** As the process was started: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
  environment: Readonly<Record<string, string | undefined>>;
  /** For tests; the default is a datagram to NOTIFY_SOCKET. */
  send?: SendNotification;
}

/**
 * Notifies systemd of READY, STATUS, WATCHDOG and STOPPING, where it asked (Type=notify). The watchdog is fed from the
 * event loop, so a process whose loop hangs is restarted.
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

  /** Whether a service manager expects notifications. */
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

  /** A new run of the program takes over this process: the service does not end. */
  async restarting(): Promise<void> {
    this.#cancelWatchdog?.();
    this.#cancelWatchdog = undefined;
    const sinceBootUs = process.hrtime.bigint() / 1000n;
    await this.#notify(`RELOADING=1\nMONOTONIC_USEC=${sinceBootUs}`);
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

/** Sends by the C library, or by systemd-notify(1) where Bun may not make code executable. @param socket or `@name` */
export async function sendDatagram(socket: string, message: string): Promise<void> {
  try {
    await loadLibc();
  } catch (error) {
    return sendByProgram(socket, message, error as Error);
  }
  using sender = await openUnixDatagram(socket);
  if (!sender.send(Buffer.from(message))) throw new Error("nothing receives on NOTIFY_SOCKET");
}

function sendByProgram(socket: string, message: string, cause: Error): void {
  const program = Bun.which("systemd-notify");
  if (program === null) {
    throw new Error(`bun:ffi is not available (${cause.message}) and systemd-notify(1) is not installed`);
  }
  const { exitCode } = Bun.spawnSync([program, message], {
    env: { ...process.env, NOTIFY_SOCKET: socket },
    stdio: ["ignore", "ignore", "ignore"],
    timeout: 5000,
  });
  if (exitCode !== 0) throw new Error(`${program} ended with exit code ${exitCode}`);
}
