import type { KubeletOptions } from "../model/kubelet-options.ts";

/** Options that take effect while the kubelet runs. All others need a restart of kubelet-ts, which pods do not notice. */
export const LIVE_OPTIONS: ReadonlySet<keyof KubeletOptions> = new Set<keyof KubeletOptions>([
  "verbosity",
  "crashLoopBackOffMaxMs",
  "maximumDeadContainers",
  "maximumDeadContainersPerContainer",
  "minimumContainerTtlMs",
  "imageGcHighThresholdPercent",
  "imageGcLowThresholdPercent",
  "minimumImageTtlMs",
  "imageMaximumGcAgeMs",
  "evictionHard",
  "evictionSoft",
  "evictionSoftGracePeriodMs",
  "evictionMinimumReclaim",
  "evictionPressureTransitionMs",
  "validate",
  "allowPrivileged",
  "clusterDns",
  "clusterDomain",
  "resolvConf",
]);

/** Difference between the options in force and new ones. */
export interface OptionChanges {
  /** Taken over now. */
  live: (keyof KubeletOptions)[];
  /** Take effect at the next start. */
  needRestart: (keyof KubeletOptions)[];
}

/** Compares two resolved sets of options. Pure. */
export function compareOptions(current: KubeletOptions, next: KubeletOptions): OptionChanges {
  const changed = (Object.keys(next) as (keyof KubeletOptions)[]).filter(
    (name) => !Bun.deepEquals(current[name], next[name]),
  );
  return {
    live: changed.filter((name) => LIVE_OPTIONS.has(name)),
    needRestart: changed.filter((name) => !LIVE_OPTIONS.has(name)),
  };
}
