import { resolve } from "node:path";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { chooseRootDir, listKubelets, writeDefaultContext } from "../client/find-kubelet.ts";
import { TextTable } from "../print/text-table.ts";
import { CommandError, type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts use [NODE|ROOT-DIR]`: which of several kubelets the other commands mean. Returns the exit code. */
export async function runUse(request: CommandRequest, io: CommandIo): Promise<number> {
  const [written, ...others] = request.positionals;
  if (others.length > 0)
    throw new UsageError(`use takes one node or root directory (found also "${others.join('", "')}")`);
  const kubelets = listKubelets();
  if (request.isOn("none")) {
    if (written !== undefined) throw new UsageError("--none takes no root directory");
    writeDefaultContext(undefined);
    io.stdout("no default is set\n");
    return 0;
  }
  if (written === undefined) {
    const chosen = chooseRootDir(request.value("root-dir"));
    const current = resolve(chosen?.rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
    const rows = kubelets.map(({ rootDir, nodeName }) => [rootDir === current ? "*" : "", nodeName, rootDir]);
    if (rows.length > 0) io.stdout(new TextTable().render([["CURRENT", "NODE", "ROOT-DIR"], ...rows]));
    io.stderr(`commands ask the kubelet of ${current} (${chosen ? `by ${chosen.origin}` : "the default"})\n`);
    return 0;
  }
  const found = kubelets.filter(({ nodeName, rootDir }) => nodeName === written || rootDir === resolve(written));
  if (found.length > 1) {
    throw new CommandError(
      `several kubelets have the node name "${written}": name the root directory: ${found.map(({ rootDir }) => rootDir).join(", ")}`,
    );
  }
  if (found.length === 0 && !written.includes("/")) {
    const known = kubelets.map(({ nodeName }) => nodeName);
    const hint = didYouMean(written, known) || "; a root directory is written with a slash";
    throw new CommandError(`no kubelet runs on a node "${written}" (running: ${known.join(", ") || "none"})${hint}`);
  }
  const rootDir = found[0]?.rootDir ?? resolve(written);
  writeDefaultContext(rootDir);
  io.stdout(`commands ask the kubelet of ${rootDir} from now on\n`);
  if (found.length === 0) io.stderr("no kubelet runs there now\n");
  return 0;
}
