import { appendFileSync, chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A signal as `busctl monitor` of systemd 252 shows it. */
const prepareForShutdown = (value: boolean) => `‣ Type=signal  Endian=l  Flags=1  Version=1 Cookie=2
  Sender=:1.18  Path=/org/freedesktop/login1  Interface=org.freedesktop.login1.Manager  Member=PrepareForShutdown
  UniqueName=:1.18
  MESSAGE "b" {
          BOOLEAN ${value};
  };

`;

/** Replaces systemd-inhibit, busctl and systemctl of a machine with systemd by programs in a directory of their own. */
export class FakeLogind {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
    writeFileSync(this.#file("signals"), "");
    // Holds the lock while its program runs.
    this.#install("systemd-inhibit", 'touch held; while [ "$1" != cat ]; do shift; done; "$@"; rm held');
    this.#install("busctl", "case $1 in get-property) cat delay;; monitor) exec tail -n +1 -f signals;; esac");
    this.#install(
      "systemctl",
      'case $1 in is-system-running) cat state; exit 1;; kill) echo "$*" >> reloads; mv delay-then delay;; esac',
    );
    this.setDelay(60);
    this.setState("running");
  }

  /** Environment of a process that is to find these programs. */
  get env(): { PATH: string } {
    return { PATH: `${this.#directory}:${process.env.PATH ?? ""}` };
  }

  get isHeld(): boolean {
    return existsSync(this.#file("held"));
  }

  /** How long logind lets itself be delayed. @param thenSeconds and after its configuration was read again */
  setDelay(seconds: number, thenSeconds = seconds): void {
    writeFileSync(this.#file("delay"), `t ${seconds * 1_000_000}\n`);
    writeFileSync(this.#file("delay-then"), `t ${thenSeconds * 1_000_000}\n`);
  }

  setState(state: "running" | "stopping"): void {
    writeFileSync(this.#file("state"), `${state}\n`);
  }

  /** The machine has gone down and started again. */
  reboot(): void {
    writeFileSync(this.#file("signals"), "");
    this.setState("running");
  }

  /** The machine is about to go down, or no longer. */
  announce(isGoingDown: boolean): void {
    appendFileSync(this.#file("signals"), prepareForShutdown(isGoingDown));
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  #install(name: string, script: string): void {
    writeFileSync(this.#file(name), `#!/bin/sh\ncd "${this.#directory}"\n${script}\n`);
    chmodSync(this.#file(name), 0o755);
  }
}
