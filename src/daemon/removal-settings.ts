import { join } from "node:path";
import * as v from "valibot";
import { readTextIfExists } from "../base/files/bounded-read.ts";
import { replaceFile } from "../base/files/replace-file.ts";
import type { KubeletOptions } from "../config/option-table.ts";

/** Settings that place files and containers of pods outside the root directory. */
const RemovalSettingsSchema = v.partial(
  v.object({
    podLogsDir: v.string(),
    containersLogsDir: v.string(),
    cgroupRoot: v.string(),
    cgroupsPerQos: v.boolean(),
    cgroupDriver: v.picklist(["", "cgroupfs", "systemd"]),
    networkPlugin: v.string(),
    cniConfDir: v.string(),
    cniBinDirs: v.array(v.string()),
    cniCacheDir: v.string(),
  }),
);
/** Settings of the last run, as options. */
type RemovalSettings = Partial<Pick<KubeletOptions, keyof v.InferOutput<typeof RemovalSettingsSchema>>>;

const MAX_BYTES = 64 * 1024;

const pathOf = (rootDir: string): string => join(rootDir, "state", "removal-settings.json");

/** Saves the settings for a `kubelet-ts delete` without a running kubelet. */
export function writeRemovalSettings(options: KubeletOptions): void {
  const names = Object.keys(RemovalSettingsSchema.entries) as (keyof RemovalSettings)[];
  const settings = Object.fromEntries(names.map((name) => [name, options[name]]));
  try {
    replaceFile(pathOf(options.rootDir), `${JSON.stringify(settings)}\n`, { durable: false });
  } catch {
    // A full or read-only disk: files outside the root directory are removed at the next start.
  }
}

/** The settings of the last run on a root directory; none where they cannot be read. */
export function readRemovalSettings(rootDir: string): RemovalSettings {
  try {
    const text = readTextIfExists(pathOf(rootDir), MAX_BYTES);
    return text === undefined ? {} : (v.parse(RemovalSettingsSchema, JSON.parse(text)) as RemovalSettings);
  } catch {
    return {};
  }
}
