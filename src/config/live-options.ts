import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import { LIVE_OPTIONS } from "./option-table.ts";

/** Difference between the options in force and new ones. */
interface OptionChanges {
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
