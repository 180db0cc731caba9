/** Terminal output of the scripts, and how they stop. No dependencies: they run before `npm ci`. */

const color = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

/** @param {string} code @param {string} text */
const paint = (code, text) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);

/** @param {string} text */
export const bold = (text) => paint("1", text);
/** @param {string} text */
export const dim = (text) => paint("2", text);
/** @param {string} text */
export const red = (text) => paint("31", text);
/** @param {string} text */
export const green = (text) => paint("32", text);

/** One fact on one line: `  engine    Docker 20.10.24 on /var/run/docker.sock`. */
export function step(/** @type {string} */ label, /** @type {string} */ text) {
  console.log(`  ${green(label.padEnd(9))} ${text}`);
}

/** A heading with a blank line before and after. */
export function heading(/** @type {string} */ text) {
  console.log(`\n${bold(text)}\n`);
}

/** The reason why a script cannot continue, and the fix. Shown without a stack. */
export class CannotContinue extends Error {
  /** @param {string} message @param {readonly string[]} fix lines; what to do, most likely first */
  constructor(message, fix = []) {
    super([message, ...fix.map((line) => `  ${line}`)].join("\n"));
    this.name = "CannotContinue";
  }
}

/** Runs a script's main function: exit code 0, or what it returns, or 1 after the error has been shown once. */
export async function runMain(/** @type {() => Promise<number | void>} */ main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    console.error(`\n${red("error")}  ${error instanceof CannotContinue ? error.message : (error?.stack ?? error)}`);
    process.exitCode = 1;
  }
}

/** `1.2 s`, `340 ms` */
export function sayDuration(/** @type {number} */ ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
