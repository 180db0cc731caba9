import { expect, test } from "bun:test";
import { join } from "node:path";

const SRC = join(import.meta.dir, "../../src");

/** In a process of its own: it has these errors. */
async function run(script: string, redirect = "") {
  const module = JSON.stringify(join(SRC, "daemon/unexpected-errors.ts"));
  const text = `import { handleUnexpectedErrors, logUnexpectedErrors } from ${module};\nhandleUnexpectedErrors();\n${script}`;
  return sh(`exec "$0" -e "$1" ${redirect}`, process.execPath, text);
}

async function sh(line: string, ...args: string[]) {
  const child = Bun.spawn(["sh", "-c", line, ...args], { stdout: "pipe", stderr: "pipe" });
  const [err, out] = await Promise.all([new Response(child.stderr).text(), new Response(child.stdout).text()]);
  return { err, out, code: await child.exited };
}

test("a command ends with an unexpected error", async () => {
  const { err, code } = await run(`Promise.reject(new Error("it is not awaited")); setTimeout(() => {}, 60_000);`);
  expect(err).toStartWith("kubelet-ts: unexpected unhandledRejection: Error: it is not awaited");
  expect(code).toBe(1);
});

test("supervision continues, and the error is a line of the log", async () => {
  const { out, code } = await run(`
    logUnexpectedErrors({ error: (message) => console.log(JSON.stringify({ message })) });
    // Begun by the timer that throws: a busy machine may be late for both.
    setTimeout(() => { setTimeout(() => console.log("continues"), 1); throw "thrown"; }, 1);`);
  expect(code).toBe(0);
  expect(out).toBe('{"message":"unexpected uncaughtException: thrown"}\ncontinues\n');
});

test("standard error on a full disk neither stops the process nor keeps it busy", async () => {
  const { out, code } = await run(
    `const { writeStderr } = await import(${JSON.stringify(join(SRC, "base/host/write-all.ts"))});
    logUnexpectedErrors({ error: writeStderr });
    writeStderr("one\\n");
    setTimeout(() => { throw new Error("thrown"); }, 1);
    setTimeout(() => console.log("continues"), 20);`,
    "2>/dev/full",
  );
  expect({ out, code }).toEqual({ out: "continues\n", code: 0 });
});

test.each(["version", "--version", "help", "config", "completion bash", "validate /dev/null"])(
  "%s: what cannot be written is not a success",
  async (words) => {
    const line = `exec "$0" "$1" ${words} >/dev/full`;
    const { err, code } = await sh(line, process.execPath, join(SRC, "main.ts"));
    expect(err).toBe("kubelet-ts: cannot write: ENOSPC: no space left on device, write\n");
    expect(code).toBe(1);
  },
);
