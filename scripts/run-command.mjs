import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Runs a program to its end.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, show?: boolean | "and keep", timeoutMs?: number, signal?: AbortSignal }} [options]
 *   `show`: its output goes straight to ours instead of into the result; `and keep`: into both. `signal` ends it with SIGTERM.
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>} `code` is 127 when it could not be started, 137 when
 *   it was killed by the time limit.
 */
export function runCommand(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: options.show === true ? ["ignore", "inherit", "inherit"] : ["ignore", "pipe", "pipe"],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: "SIGKILL" }),
    });
    const end = () => child.kill("SIGTERM");
    options.signal?.addEventListener("abort", end, { once: true });
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk) => {
      stdout += chunk;
      if (options.show) process.stdout.write(chunk);
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk) => {
      stderr += chunk;
      if (options.show) process.stderr.write(chunk);
    });
    child.on("error", (error) => resolve({ code: 127, stdout, stderr: stderr + error.message }));
    child.on("close", (code) => {
      options.signal?.removeEventListener("abort", end);
      resolve({ code: code ?? 137, stdout, stderr });
    });
  });
}

/** Full path of a program, looked up as a shell would, and in the sbin folders that a user's PATH may lack. */
export function findProgram(/** @type {string} */ name) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  for (const folder of folders.filter((entry) => entry !== "")) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return undefined;
}
