import { join } from "node:path";
import type { PodRef } from "./pod.ts";

/** A pod as its metadata or its containers' labels name it. */
export type LoggedPod = { [K in keyof PodRef]?: string | undefined };

/** `<namespace>_<name>_<uid>`, below `--pod-logs-dir`. */
export const toPodLogDirName = ({ namespace = "default", name = "", uid = "" }: LoggedPod) =>
  [namespace, name, uid].join("_");

/** `<podLogsDir>/<namespace>_<name>_<uid>/<container>/<restartCount>.log`; "" when podLogsDir is. */
export const toContainerLogPath = (podLogsDir: string, pod: LoggedPod, containerName: string, restartCount: number) =>
  podLogsDir && join(podLogsDir, toPodLogDirName(pod), containerName, `${restartCount}.log`);
