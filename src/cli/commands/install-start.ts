import { existsSync } from "node:fs";
import { join } from "node:path";
import { readBoundedStream } from "../../base/files/bounded-stream.ts";
import { COMMAND_SOCKET } from "../../base/host/root-lock.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import type { CheckResult } from "../../daemon/doctor/check-result.ts";
import { runChecks } from "../../daemon/doctor/checks.ts";
import { gatherFacts } from "../../daemon/doctor/gather-facts.ts";
import { serviceEnvironment } from "../../daemon/install/find-service.ts";
import type { InstallState } from "../../daemon/install/plan-install.ts";
import { buildFacts } from "../../daemon/version.ts";
import { removeProxies } from "../client/find-kubelet.ts";
import { renderLines } from "./doctor.ts";

/** Time that a service which has started gets to reach its engine. */
const READY_WITHIN_MS = 60_000;
const POLL_MS = 500;
const MAX_ANSWER_BYTES = 65_536;

interface ServiceStart {
  /** Why it is not ready; undefined when it is. */
  problem: string | undefined;
  /** Lines of doctor about it; "" when there are none. */
  findings: string;
  /** Result of `systemd-analyze security`, e.g. `6.2 MEDIUM`; undefined where it is not known. */
  exposure: string | undefined;
}

/** Waits until the service that was started supervises pods, and looks for what keeps it from its work. */
export async function watchStart({ rootDir, paths, manager }: InstallState): Promise<ServiceStart> {
  removeProxies();
  const problem = await waitUntilHealthy(join(rootDir, COMMAND_SOCKET));
  const argv = existsSync(paths.config) ? [`--config=${paths.config}`] : [];
  const { options } = await resolveOptions(argv, "/", "show");
  const results = runChecks(
    await gatherFacts({ options, environment: serviceEnvironment(manager, process.env), ...buildFacts() }),
  );
  const isAboutStart = ({ status, name }: CheckResult) =>
    status === "fail" || (status === "warn" && name.startsWith("port "));
  const found = results.filter(isAboutStart);
  const findings = found.length === 0 ? "" : `${renderLines(found).join("\n")}\n`;
  return { problem, findings, exposure: manager === "systemd" ? await readExposure() : undefined };
}

async function readExposure(): Promise<string | undefined> {
  const argv = ["systemd-analyze", "security", "--no-pager", "kubelet-ts.service"];
  const outcome = await runProgram(argv, { timeoutMs: 30_000, maxBytes: 1 << 20 }).catch(() => undefined);
  return /Overall exposure level.*: (\S+ \S+)/.exec(outcome?.stdout ?? "")?.[1];
}

/** @returns what /healthz says after the last try; undefined once it is ok */
async function waitUntilHealthy(socket: string): Promise<string | undefined> {
  const endMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const problem = await askHealth(socket);
    if (problem === undefined || performance.now() >= endMs) return problem;
    await Bun.sleep(POLL_MS);
  }
}

async function askHealth(unix: string): Promise<string | undefined> {
  try {
    const answer = await fetch("http://kubelet/healthz", { unix, signal: AbortSignal.timeout(5000) });
    if (answer.ok) return undefined;
    const text = await readBoundedStream(answer.body, MAX_ANSWER_BYTES);
    return /^\[-\].*? failed: (.*)$/m.exec(text)?.[1] ?? text.trim().split("\n")[0] ?? "";
  } catch {
    return "it does not answer";
  }
}
