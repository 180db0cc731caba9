import { version as packageVersion } from "../../package.json";
import type { BuildFacts } from "../stats/metrics/kubelet-metrics.ts";

declare const KUBELET_TS_GIT_COMMIT: string;
declare const KUBELET_TS_GIT_TREE_STATE: string;
declare const KUBELET_TS_BUILD_DATE: string;
declare const KUBELET_TS_TARGET: string;

/**
 * Facts of the running program. `scripts/build.ts` embeds the git facts; a plain `bun build` omits them. `typeof` is the
 * only way to read a name that may be undefined.
 */
export const buildInfo: BuildFacts = {
  version: packageVersion,
  gitCommit: typeof KUBELET_TS_GIT_COMMIT === "string" ? KUBELET_TS_GIT_COMMIT : "unknown",
  gitTreeState: toTreeState(typeof KUBELET_TS_GIT_TREE_STATE === "string" ? KUBELET_TS_GIT_TREE_STATE : ""),
  buildDate: typeof KUBELET_TS_BUILD_DATE === "string" ? KUBELET_TS_BUILD_DATE : "unknown",
};

/** The version of Kubernetes whose API and kubelet are followed. */
export const KUBERNETES_VERSION = { major: "1", minor: "34" };

/** The version that a node of a cluster shows, e.g. `1.34.0-kubelet-ts.0.1.0`: API servers and installers compare it with theirs. */
export const kubeletVersion = `${KUBERNETES_VERSION.major}.${KUBERNETES_VERSION.minor}.0-kubelet-ts.${buildInfo.version}`;

/** Major and minor version, e.g. `0.1`: what probes and hooks send as User-Agent. */
export const probeVersion = buildInfo.version.split(".").slice(0, 2).join(".");

/** Facts that `kubelet-ts doctor` compares with the machine. */
export const buildFacts = () => ({
  buildMs: Date.parse(buildInfo.buildDate) || 0,
  binaryTarget: typeof KUBELET_TS_TARGET === "string" ? KUBELET_TS_TARGET.replace("linux-", "") : process.arch,
});

/** One line for `--version`, e.g. `kubelet-ts 0.1.0 (3f2c1ab90d4e)`; `-dirty` behind the commit of a changed tree. */
export function versionLine(): string {
  const { version, gitCommit, gitTreeState } = buildInfo;
  if (gitCommit === "unknown") return `kubelet-ts ${version}`;
  return `kubelet-ts ${version} (${gitCommit.slice(0, 12)}${gitTreeState === "dirty" ? "-dirty" : ""})`;
}

function toTreeState(text: string): BuildFacts["gitTreeState"] {
  return text === "clean" || text === "dirty" ? text : "unknown";
}
