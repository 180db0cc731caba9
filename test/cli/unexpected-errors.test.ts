import { expect, test } from "bun:test";
import { join } from "node:path";

/** In a process of its own: it has these errors. */
async function stderrOf(script: string): Promise<string> {
  const module = JSON.stringify(join(import.meta.dir, "../../src/cli/unexpected-errors.ts"));
  const child = Bun.spawn(
    [process.execPath, "-e", `import { surviveUnexpectedErrors, logUnexpectedErrors } from ${module};\n${script}`],
    { stdout: "pipe", stderr: "pipe" },
  );
  const [err, out] = await Promise.all([new Response(child.stderr).text(), new Response(child.stdout).text()]);
  expect(await child.exited).toBe(0);
  return `${err}${out}`;
}

test("an error that nobody expected is said and survived", async () => {
  const said = await stderrOf(`surviveUnexpectedErrors();
    setTimeout(() => console.log("goes on"), 10);
    Promise.reject(new Error("nobody waits for it"));`);
  expect(said).toStartWith("kubelet-ts: unexpected unhandledRejection: Error: nobody waits for it");
  expect(said).toEndWith("goes on\n");
});

test("once there is a log it is a line there", async () => {
  const said = await stderrOf(`surviveUnexpectedErrors();
    logUnexpectedErrors({ error: (message) => console.log(JSON.stringify({ message })) });
    setTimeout(() => { throw "thrown"; }, 1);`);
  expect(JSON.parse(said)).toEqual({ message: "unexpected uncaughtException: thrown" });
});
