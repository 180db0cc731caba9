import {
  type InstallPaths,
  isInstalled,
  isUnedited,
  renderConfig,
  renderOpenrc,
  renderUnit,
  type ServiceManager,
} from "./install-files.ts";

/** State of the machine before an installation. Texts are undefined for files that do not exist. */
export interface InstallState {
  manager: ServiceManager;
  paths: InstallPaths;
  /** SHA-256 of the program that installs itself. */
  ownHash: string;
  /** Path of the program that runs. */
  program: string;
  /** Root directory of the service, as its configuration names it. */
  rootDir: string;
  /** Engine of the service; undefined: the default one. */
  dockerEndpoint: string | undefined;
  installedHash: string | undefined;
  unit: string | undefined;
  hasConfig: boolean;
  hasManifestDir: boolean;
  hasPrevious: boolean;
  /** false: only files are written (an image is built). */
  canStart: boolean;
  /** Manifests of a bundle. */
  manifests?: readonly { name: string; text: string }[];
  /** Services of the user run without a login session. Meaningful for `systemd-user`. */
  isLingering: boolean;
}

/** One effect, in order. */
export type InstallStep =
  | { kind: "directory"; path: string }
  | { kind: "write"; path: string; mode: number; text: string }
  /** Copies the running program there, atomically. */
  | { kind: "copy-self"; path: string }
  /** Renames or copies a file over another, atomically. */
  | { kind: "move"; from: string; to: string }
  /** Puts a link to a file, or a copy, over another, atomically. */
  | { kind: "keep"; from: string; to: string }
  | { kind: "remove"; path: string }
  /** A symbolic link. */
  | { kind: "link"; path: string; to: string }
  | { kind: "run"; argv: readonly string[]; mayFail?: true };

const directory = (path: string): InstallStep => ({ kind: "directory", path });
const move = (from: string, to: string): InstallStep => ({ kind: "move", from, to });
const keep = (from: string, to: string): InstallStep => ({ kind: "keep", from, to });
const run = (...argv: string[]): InstallStep => ({ kind: "run", argv });
/** A failure does not end the work. */
const tryRun = (...argv: string[]): InstallStep => ({ kind: "run", argv, mayFail: true });

export interface InstallPlan {
  steps: InstallStep[];
  /** For users, in order. */
  notes: string[];
  /** Removed when a step fails: a disk that is full stays as full as it was. */
  scratch?: readonly string[];
}

/** First installation and upgrade: what is already as it should be is left alone. Pure. */
export function planInstall(state: InstallState): InstallPlan {
  const { paths, manager, unit } = state;
  const steps: InstallStep[] = [];
  const notes: string[] = [];
  const isUpgrade = state.installedHash !== undefined && state.installedHash !== state.ownHash;
  const next = `${paths.binary}.new`;
  if (isUpgrade) {
    // The new one is on the disk before the old one is touched: there is a program to start at every moment.
    steps.push(directory(parent(paths.previousBinary)), { kind: "copy-self", path: next });
    steps.push(keep(paths.binary, paths.previousBinary), move(next, paths.binary));
    notes.push(`The binary before this one is kept: kubelet-ts install --rollback`);
  } else if (state.installedHash !== state.ownHash) {
    steps.push(directory(parent(paths.binary)), { kind: "copy-self", path: paths.binary });
  }
  if (!state.hasManifestDir) steps.push(directory(paths.manifestDir));
  for (const { name, text } of state.manifests ?? []) {
    // Manifests may hold secrets.
    steps.push({ kind: "write", path: `${paths.manifestDir}/${name}`, mode: 0o600, text });
  }
  if (!state.hasConfig) {
    const text = renderConfig(paths);
    steps.push(directory(parent(paths.config)), { kind: "write", path: paths.config, mode: 0o644, text });
  }
  const wanted = renderService(manager, paths);
  if (unit !== wanted) {
    const isEdited = unit !== undefined && !isUnedited(unit);
    const path = isEdited ? `${paths.unit}.new` : paths.unit;
    const mode = manager === "openrc" ? 0o755 : 0o644;
    steps.push(directory(parent(path)), { kind: "write", path, mode, text: wanted });
    if (isEdited) notes.push(`${paths.unit} was edited and is left as it is; the new one is ${path}`);
  }
  if (state.canStart) steps.push(...startSteps(manager));
  else steps.push(directory(parent(paths.enabling)), { kind: "link", path: paths.enabling, to: paths.unit });
  if (state.canStart && state.installedHash === undefined)
    notes.push(`A link to the web page of this node: ${manager === "systemd-user" ? "" : "sudo "}kubelet-ts page`);
  if (manager === "systemd-user" && !state.isLingering)
    notes.push("The service ends when the last session of this user ends; to keep it: loginctl enable-linger");
  return { steps, notes, ...(isUpgrade && { scratch: [next] }) };
}

/** Swaps the installed binary and the one before it, so that a second rollback goes forward again. Pure. */
export function planRollback(state: InstallState): InstallPlan | { problem: string } {
  const { paths, manager } = state;
  if (!state.hasPrevious) return { problem: `${paths.previousBinary}: there is no earlier binary` };
  const start = state.canStart ? startSteps(manager) : [];
  // An upgrade that failed between its two steps: the earlier binary was moved away, and nothing took its place.
  if (state.installedHash === undefined) {
    return { steps: [move(paths.previousBinary, paths.binary), ...start], notes: [] };
  }
  const aside = `${paths.previousBinary}.swap`;
  const swap = [keep(paths.binary, aside), move(paths.previousBinary, paths.binary), move(aside, paths.previousBinary)];
  return { steps: [...swap, ...start], notes: [] };
}

/** Nothing of an installation is there. */
export const isAbsent = ({ installedHash, unit }: InstallState): boolean =>
  installedHash === undefined && unit === undefined;

/**
 * Removes the service and the program; configuration, manifests and the root directory stay. Pure.
 * @param withPods also stops the pods and removes their containers: also those that an earlier removal left
 */
export function planUninstall(state: InstallState, withPods: boolean): InstallPlan | { problem: string } {
  const { paths, manager } = state;
  const isOurs = state.installedHash === state.ownHash || state.hasPrevious || isInstalled(state.unit ?? "");
  if (!isOurs && !isAbsent(state)) {
    return {
      problem: `${paths.binary} was not installed by kubelet-ts install: no service of it is there; remove it by hand`,
    };
  }
  const steps: InstallStep[] = [];
  if (state.canStart && state.unit !== undefined) {
    if (manager === "openrc") {
      steps.push(tryRun("rc-service", "kubelet-ts", "stop"), tryRun("rc-update", "del", "kubelet-ts", "default"));
    } else steps.push(tryRun(...systemctl(manager), "disable", "--now", "kubelet-ts.service"));
  }
  // Pods belong to this machine, not to the image that is built below another directory.
  if (withPods && state.canStart) {
    const endpoint = state.dockerEndpoint === undefined ? [] : [`--docker-endpoint=${state.dockerEndpoint}`];
    steps.push(run(state.program, "delete", "--all", `--root-dir=${state.rootDir}`, ...endpoint));
  }
  if (isAbsent(state)) return { steps, notes: ["kubelet-ts was not installed; its pods are stopped"] };
  const files = [paths.unit, `${paths.unit}.new`, paths.binary, paths.previousBinary];
  if (!state.canStart) files.push(paths.enabling);
  steps.push(...files.map((path): InstallStep => ({ kind: "remove", path })));
  if (state.canStart && manager !== "openrc") steps.push(tryRun(...systemctl(manager), "daemon-reload"));
  const notes = [`Kept: ${paths.config}, ${paths.manifestDir} and the root directory`];
  if (!withPods && state.canStart) {
    notes.unshift(
      "Pods keep running without supervision, and rules of Services, if there are any, stay; any copy of kubelet-ts ends both: ./kubelet-ts uninstall --pods",
    );
  }
  return { steps, notes };
}

const systemctl = (manager: ServiceManager) => (manager === "systemd-user" ? ["systemctl", "--user"] : ["systemctl"]);

/** With Type=notify the start returns when the service is ready. */
function startSteps(manager: ServiceManager): InstallStep[] {
  if (manager === "openrc") {
    return [run("rc-update", "add", "kubelet-ts", "default"), run("rc-service", "kubelet-ts", "restart")];
  }
  const verbs = [["daemon-reload"], ["enable", "kubelet-ts.service"], ["restart", "kubelet-ts.service"]];
  return verbs.map((verb) => run(...systemctl(manager), ...verb));
}

export const renderService = (manager: ServiceManager, paths: InstallPaths): string =>
  manager === "openrc" ? renderOpenrc(paths) : renderUnit(paths, manager === "systemd-user");

const parent = (path: string) => path.slice(0, path.lastIndexOf("/"));
