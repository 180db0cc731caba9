/** The run of CI: `npm test`, `npm run test:long`, `npm run test:cluster`. Ends with one line, `N passed, N failed`, the sum. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "./workspace.mjs";

const PARTS = [["test.mjs"], ["test.mjs", "long"], ["cluster-test.mjs"]];

let isInterrupted = false;

/** Runs a script and shows what it prints, except for its closing line. */
function runPart([script, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, "scripts", script), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => {
        isInterrupted = true;
        child.kill(signal);
      });
    let rest = "";
    let counts;
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const match = /^(\d+) passed, (\d+) failed$/.exec(line);
        if (match) counts = { passed: Number(match[1]), failed: Number(match[2]) };
        else console.log(line);
      }
    });
    child.on("error", () => resolve({ passed: 0, failed: 1 }));
    child.on("close", (code) => {
      if (rest !== "") console.log(rest);
      const found = counts ?? { passed: 0, failed: 0 };
      resolve({ passed: found.passed, failed: Math.max(found.failed, code === 0 ? 0 : 1) });
    });
  });
}

const total = { passed: 0, failed: 0 };
for (const part of PARTS) {
  if (isInterrupted) break;
  const { passed, failed } = await runPart(part);
  total.passed += passed;
  total.failed += failed;
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
