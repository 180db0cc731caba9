import { join } from "node:path";
import type { PodRef } from "../base/model/pod-ref.ts";

/** A pod as its metadata or its containers' labels name it. */
export type LoggedPod = { [K in keyof PodRef]?: string | undefined };

/** `<namespace>_<name>_<uid>`, below `--pod-logs-dir`. */
export const toPodLogDirName = ({ namespace = "default", name = "", uid = "" }: LoggedPod) =>
  [namespace, name, uid].join("_");

/** `<podLogsDir>/<namespace>_<name>_<uid>/<container>/<restartCount>.log`; "" when podLogsDir is. */
export const toContainerLogPath = (podLogsDir: string, pod: LoggedPod, containerName: string, restartCount: number) =>
  podLogsDir && join(podLogsDir, toPodLogDirName(pod), containerName, `${restartCount}.log`);

/**
 * The link that log shippers look for: `<pod>_<namespace>_<container>-<container id>.log`, without its directory. Cut to
 * 255 characters, the ending stays. Source: kubelet's logSymlink.
 */
export function toContainerLogLinkName(pod: LoggedPod, containerName: string, containerId: string): string {
  const { name = "", namespace = "default" } = pod;
  const suffix = ".log";
  const stem = `${name}_${namespace}_${containerName}-${containerId}`;
  return stem.length + suffix.length > 255 ? `${stem.slice(0, 255 - suffix.length)}${suffix}` : stem + suffix;
}
