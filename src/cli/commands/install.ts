import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { resolveOptions } from "../../config/resolve-options.ts";
import { installPaths, type ServiceManager } from "../../install/install-files.ts";
import { type InstallPlan, planInstall, planRollback, planUninstall } from "../../install/plan-install.ts";
import {
  detectManager,
  InstallError,
  type InstallTarget,
  readInstallState,
  runStep,
} from "../../install/run-install.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts install [--rollback]`. Returns the exit code. */
export async function runInstall(request: CommandRequest, io: CommandIo): Promise<number> {
  const { target, state } = await readTarget(request);
  const plan = request.isOn("rollback") ? planRollback(state) : planInstall(state);
  if ("problem" in plan) throw new CommandError(plan.problem);
  await carryOut(plan, target, state.manager, request.isOn("dry-run"), io);
  if (request.isOn("dry-run")) return 0;
  const { manifestDir, config } = state.paths;
  io.stdout(
    state.canStart
      ? `kubelet-ts is installed and runs. Go on with:
  cp pod.yaml ${manifestDir}/        # runs the pods of a manifest
  kubelet-ts get pods${" ".repeat(Math.max(1, manifestDir.length - 3))}# shows them
  kubelet-ts doctor${" ".repeat(Math.max(1, manifestDir.length - 1))}# checks the machine
Settings: ${config}
`
      : `Installed below ${target.destdir}; nothing was started\n`,
  );
  return 0;
}

/** `kubelet-ts uninstall [--pods]`. Returns the exit code. */
export async function runUninstall(request: CommandRequest, io: CommandIo): Promise<number> {
  const { target, state } = await readTarget(request);
  if (state.installedHash === undefined && state.unit === undefined) {
    throw new CommandError(`kubelet-ts is not installed at ${state.paths.binary}`);
  }
  await carryOut(planUninstall(state, request.isOn("pods")), target, state.manager, request.isOn("dry-run"), io);
  return 0;
}

async function readTarget(request: CommandRequest) {
  const [first] = request.positionals;
  if (first !== undefined) throw new UsageError(`takes no arguments (found "${first}")`);
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
        ? "neither systemd nor OpenRC runs this machine: start kubelet-ts from its own service manager"
        : `installing for the whole machine (${unit}) needs root: use sudo; a user service needs systemd`,
    );
  }
  return { target, state: await readInstallState(target, manager, await readRootDir(manager, target.home)) };
}

/** The root directory that the configuration of the service names, else the default one. */
async function readRootDir(manager: ServiceManager, home: string): Promise<string> {
  const { config } = installPaths(manager, home);
  const { options } = await resolveOptions(existsSync(config) ? [`--config=${config}`] : [], "/", "show");
  return options.rootDir;
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
      if (!(error instanceof InstallError)) throw error;
      const hint =
        "argv" in step && step.argv.includes("restart") ? `\nSee: ${LOG_COMMAND[manager]}; kubelet-ts doctor` : "";
      throw new CommandError(`${error.message}${hint}`);
    }
  }
  for (const note of plan.notes) io.stdout(`${note}\n`);
}
