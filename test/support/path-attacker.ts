import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Exchanges `volume/x` without end: a directory with a mark in it, nothing, a link out of the volume, nothing. */
const PROGRAM = `
const fs = require("node:fs");
const [volume, outside, count] = process.argv.slice(-3);
fs.mkdirSync(volume + "/spare/in", { recursive: true });
fs.writeFileSync(volume + "/spare/in/mark", "inside");
for (let i = 1; ; i++) {
  try {
    fs.renameSync(volume + "/spare", volume + "/x");
    fs.renameSync(volume + "/x", volume + "/spare");
    fs.symlinkSync(outside, volume + "/x");
    fs.unlinkSync(volume + "/x");
  } catch {
    fs.rmSync(volume + "/x", { recursive: true, force: true }); // the victim made it
  }
  if (i % 50 === 0) fs.writeFileSync(count, String(i));
}`;

/** Number of exchanges after which a test counts as attacked. */
const ENOUGH = 500;

/**
 * A process that attacks the path `x/in` of a volume, as a container that shares the volume could: by a link to a
 * directory outside that has the same names in it.
 */
export class PathAttacker {
  /** Where the links lead: holds `in/mark`, with the text `outside`. */
  readonly outside: string;
  readonly #count: string;
  readonly #process: ReturnType<typeof Bun.spawn>;

  /** @param base an empty directory of the test's own, outside of the volume. */
  constructor(volume: string, base: string) {
    this.outside = join(base, "outside");
    this.#count = join(base, "count");
    mkdirSync(join(this.outside, "in"), { recursive: true });
    writeFileSync(join(this.outside, "in/mark"), "outside");
    writeFileSync(this.#count, "0");
    const cmd = [process.execPath, "-e", PROGRAM, volume, this.outside, this.#count];
    this.#process = Bun.spawn(cmd, { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  }

  /** @throws Error when it no longer attacks. */
  get hasDoneEnough(): boolean {
    if (this.#process.exitCode !== null) throw new Error("the attacker has ended");
    return Number(readFileSync(this.#count, "utf8")) >= ENOUGH;
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }
}
