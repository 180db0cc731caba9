import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { readBoundedStream } from "../../base/files/bounded-stream.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import { MachineLock } from "../../base/host/machine-lock.ts";
import { COMMAND_SOCKET } from "../../base/host/root-directory.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { runChecks } from "../../daemon/doctor/checks.ts";
import { gatherFacts } from "../../daemon/doctor/gather-facts.ts";
import { installPaths, OTHER_SERVICE_MANAGER, type ServiceManager } from "../../daemon/install/install-files.ts";
import {
  type InstallPlan,
  type InstallState,
  isAbsent,
  planInstall,
  planRollback,
  planUninstall,
} from "../../daemon/install/plan-install.ts";
import {
  detectManager,
  InstallError,
  type InstallTarget,
  readInstallState,
  removeScratch,
  runStep,
  serviceEnvironment,
} from "../../daemon/install/run-install.ts";
import { buildFacts } from "../../daemon/version.ts";
import type { DockerHost } from "../../docker/docker-host.ts";
import { MAX_MANIFEST_BYTES } from "../../manifest/yaml/parse-stream.ts";
import { engineOf } from "../client/engine-reader.ts";
import { removeProxies } from "../client/find-kubelet.ts";
import { CommandError, type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";
import { renderLines } from "./doctor.ts";

/** `kubelet-ts install [--rollback]`. Returns the exit code. */
export async function runInstall(request: CommandRequest, io: CommandIo): Promise<number> {
  const { target, state } = await readTarget(request);
  const file = request.value("bundle");
  if (file !== undefined && request.isOn("rollback")) throw new UsageError("give --bundle or --rollback, not both");
  const bundle = file === undefined ? undefined : await openVerified(file, state.ownHash);
  const plan = request.isOn("rollback")
    ? planRollback(state)
    : planInstall({ ...state, ...(bundle && { manifests: bundle.manifests }) });
  if ("problem" in plan) throw new CommandError(`${target.destdir}${plan.problem}`);
  if (bundle && !request.isOn("dry-run")) {
    if (target.destdir === "") await bundle.loadImages(engineOf(request, state.dockerEndpoint), io);
    else io.stdout("The images of the bundle are not loaded: with --destdir only files are written\n");
  }
  await carryOut(plan, target, state.manager, request.isOn("dry-run"), io);
  if (request.isOn("dry-run")) return 0;
  if (!state.canStart) {
    io.stdout(`Installed below ${target.destdir}; nothing was started\n`);
    return 0;
  }
  const { problem, findings, exposure } = await watchStart(state);
  const { manifestDir, config } = state.paths;
  if (problem !== undefined) {
    io.stderr(`kubelet-ts is installed and started, but it is not ready: ${problem}
${findings}See: ${LOG_COMMAND[state.manager]}; kubelet-ts doctor
`);
    return 1;
  }
  io.stdout(`kubelet-ts is installed and runs. Next steps:
  kubelet-ts doctor    # checks the machine
  kubelet-ts get pods  # shows what runs
  cp pod.yaml ${manifestDir}/  # runs the pods of a manifest
Settings: ${config}
${exposure === undefined ? "" : `Exposure of the service: ${exposure} (systemd-analyze security kubelet-ts)\n`}${findings}`);
  return 0;
}

/** Everything in the bundle is verified before anything is changed. */
async function openVerified(file: string, ownHash: string) {
  const { BINARY, BundleError, loadBundleImages, MANIFESTS, openBundle } = await import("../bundle/bundle-file.ts");
  const fail = (error: unknown): never => {
    throw error instanceof BundleError ? new CommandError(error.message) : error;
  };
  const bundle = await openBundle(file, process.arch).catch(fail);
  if (bundle.files.find(({ path }) => path === BINARY)?.sha256 !== ownHash) {
    throw new CommandError(
      `"${file}" holds another kubelet-ts (${bundle.index.kubeletVersion}) than this one: run the one in it: tar -xf ${file} ${BINARY} && ./${BINARY} install --bundle ${file}`,
    );
  }
  const names = bundle.files.map(({ path }) => path).filter((path) => path.startsWith(MANIFESTS));
  const large = bundle.files.find(({ path, size }) => path.startsWith(MANIFESTS) && size > MAX_MANIFEST_BYTES);
  if (large) throw new CommandError(`"${file}": "${large.path}" is larger than ${MAX_MANIFEST_BYTES} bytes`);
  const manifests = await Promise.all(
    names.map(async (path) => ({ name: path.slice(MANIFESTS.length), text: await bundle.read(path).text() })),
  );
  return {
    manifests,
    loadImages: async (engine: DockerHost, io: CommandIo) => {
      const loaded = await loadBundleImages(engine, bundle).catch(fail);
      for (const image of loaded) io.stdout(`Loaded ${image}\n`);
    },
  };
}

/** `kubelet-ts uninstall [--pods]`. Returns the exit code. */
export async function runUninstall(request: CommandRequest, io: CommandIo): Promise<number> {
  const { target, state } = await readTarget(request);
  const withPods = request.isOn("pods");
  if (isAbsent(state) && !(withPods && state.canStart)) {
    throw new CommandError(`kubelet-ts is not installed at ${target.destdir}${state.paths.binary}`);
  }
  const plan = planUninstall(state, withPods);
  if ("problem" in plan) throw new CommandError(`${target.destdir}${plan.problem}`);
  await carryOut(plan, target, state.manager, request.isOn("dry-run"), io);
  return 0;
}

async function readTarget(request: CommandRequest) {
  if (/^\/+$/.test(request.value("destdir") ?? "")) throw new UsageError("--destdir=/ is this machine: remove it");
  const target: InstallTarget = {
    destdir: (request.value("destdir") ?? "").replace(/\/+$/, ""),
    isRoot: process.getuid?.() === 0,
    home: homedir(),
    user: userInfo().username,
  };
  const manager = detectManager(target);
  if (!manager) {
    const unit = installPaths("systemd", "").unit;
    throw new CommandError(
      target.isRoot
        ? `neither systemd nor OpenRC runs this machine: ${OTHER_SERVICE_MANAGER}`
        : `installing for the whole machine (${unit}) needs root: use sudo; a user service needs systemd`,
    );
  }
  if (manager === "systemd-user" && !existsSync(join(process.env.XDG_RUNTIME_DIR || "/nonexistent", "bus"))) {
    throw new CommandError(
      `the service manager of user ${target.user} cannot be reached: log in as that user (ssh, machinectl shell ${target.user}@), or use sudo to install for the whole machine`,
    );
  }
  // Until the end of this process: another one would keep the new binary as the one before it.
  const isAlone = await new MachineLock("install").hold();
  if (!isAlone) throw new CommandError("another kubelet-ts install or uninstall runs: run this one when it has ended");
  return { target, state: await readInstallState(target, manager, await readSettings(manager, target.home)) };
}

/** Settings by the configuration of the service, else the defaults. */
async function readSettings(manager: ServiceManager, home: string) {
  const { config } = installPaths(manager, home);
  const { options } = await resolveOptions(existsSync(config) ? [`--config=${config}`] : [], "/", "show");
  const { DOCKER_HOST } = serviceEnvironment(manager, process.env);
  return { rootDir: options.rootDir, dockerEndpoint: options.dockerEndpoint || DOCKER_HOST };
}

const LOG_COMMAND: Readonly<Record<ServiceManager, string>> = {
  systemd: "journalctl -u kubelet-ts -n 50",
  "systemd-user": "journalctl --user -u kubelet-ts -n 50",
  openrc: "tail -n 50 /var/log/kubelet-ts.log",
};

async function carryOut(
  plan: InstallPlan,
  { destdir }: InstallTarget,
  manager: ServiceManager,
  isDryRun: boolean,
  io: CommandIo,
): Promise<void> {
  for (const step of plan.steps) {
    if (isDryRun) {
      const what = "argv" in step ? step.argv.join(" ") : "from" in step ? `${step.from} ${step.to}` : step.path;
      io.stdout(`${step.kind} ${what}\n`);
      continue;
    }
    try {
      await runStep(step, destdir);
    } catch (error) {
      removeScratch(plan.scratch ?? [], destdir);
      if (!(error instanceof InstallError)) throw error;
      const hint =
        "argv" in step && step.argv.includes("restart") ? `\nSee: ${LOG_COMMAND[manager]}; kubelet-ts doctor` : "";
      throw new CommandError(`${error.message}${hint}`);
    }
  }
  for (const note of plan.notes) io.stdout(`${note}\n`);
}

/** Time that a service which has started gets to reach its engine. */
const READY_WITHIN_MS = 60_000;
const POLL_MS = 500;
const MAX_RESPONSE_BYTES = 65_536;

/**
 * Waits until the service that was started supervises pods, and looks for what keeps it from its work.
 * @returns why it is not ready, lines of doctor about it, and the result of `systemd-analyze security`, e.g. `6.2 MEDIUM`
 */
async function watchStart({ rootDir, paths, manager }: InstallState) {
  removeProxies();
  const problem = await waitUntilHealthy(join(rootDir, COMMAND_SOCKET));
  const argv = existsSync(paths.config) ? [`--config=${paths.config}`] : [];
  const { options } = await resolveOptions(argv, "/", "show");
  const results = runChecks(
    await gatherFacts({ options, environment: serviceEnvironment(manager, process.env), ...buildFacts() }),
  );
  const found = results.filter(
    ({ status, name }) => status === "fail" || (status === "warn" && name.startsWith("port ")),
  );
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
    const response = await httpFetch("http://kubelet/healthz", { unix, signal: AbortSignal.timeout(5000) });
    if (response.ok) return undefined;
    const text = await readBoundedStream(response.body, MAX_RESPONSE_BYTES);
    return /^\[-\].*? failed: (.*)$/m.exec(text)?.[1] ?? text.trim().split("\n")[0] ?? "";
  } catch {
    return "it does not respond";
  }
}
