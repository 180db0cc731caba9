import { join } from "node:path";
import * as v from "valibot";
import { readTextIfExists, replaceFile } from "../base/files/whole-file.ts";
import { isRunning } from "../base/model/pod-snapshot.ts";
import { unlessFailed } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { MisconfigurationError } from "../docker/docker-engine.ts";
import { DockerHost, dockerEndpoint } from "../docker/docker-host.ts";
import { computeRootHash } from "../docker/labels.ts";
import type { Environment } from "./kubelet-run.ts";

/** Settings that place files and containers of pods outside the root directory, and the engine. */
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
    dockerEndpoint: v.string(),
  }),
);
/** Settings of the last run, as options. */
type RemovalSettings = Partial<Pick<KubeletOptions, keyof v.InferOutput<typeof RemovalSettingsSchema>>>;

const MAX_BYTES = 64 * 1024;
const ENGINE_TIMEOUT_MS = 10_000;

const pathOf = (rootDir: string): string => join(rootDir, "state", "removal-settings.json");

/** Saves the settings for a `kubelet-ts delete` without a running kubelet. */
export function writeRemovalSettings(options: KubeletOptions, environment: Environment): void {
  const names = Object.keys(RemovalSettingsSchema.entries) as (keyof RemovalSettings)[];
  const engine = { dockerEndpoint: dockerEndpoint({ endpoint: options.dockerEndpoint, environment }) };
  const settings = { ...Object.fromEntries(names.map((name) => [name, options[name]])), ...engine };
  try {
    replaceFile(pathOf(options.rootDir), `${JSON.stringify(settings)}\n`, { durable: false });
  } catch {
    // A full or read-only disk: files outside the root directory are removed at the next start.
  }
}

/** The settings of the last run on a root directory; none where they cannot be read. */
export function readRemovalSettings(rootDir: string): RemovalSettings {
  const text = unlessFailed(() => readTextIfExists(pathOf(rootDir), MAX_BYTES)) ?? "";
  return unlessFailed(() => v.parse(RemovalSettingsSchema, JSON.parse(text)) as RemovalSettings) ?? {};
}

/**
 * Nothing is done where the engine of the last run is the same one, or one of both does not answer.
 * @throws MisconfigurationError, with what to do: pods of the last run would run twice, they run on another engine
 */
export async function refuseOtherEngine(
  { rootDir, dockerEndpoint: endpoint }: KubeletOptions,
  environment: Environment,
): Promise<void> {
  const now = dockerEndpoint({ endpoint, environment });
  const { dockerEndpoint: before = now } = readRemovalSettings(rootDir);
  if (before === now) return;
  const runningAt = async (place: string) => {
    const host = new DockerHost({ endpoint: place, environment });
    const pods = await host.listPods(computeRootHash(rootDir), AbortSignal.timeout(ENGINE_TIMEOUT_MS));
    return pods.flatMap(({ snapshot }) => snapshot.containers.filter(isRunning).map(({ id }) => id));
  };
  const [there = [], here] = await Promise.all([runningAt(before), runningAt(now)]).catch((): string[][] => []);
  const others = there.filter((id) => !here?.includes(id));
  if (others.length === 0) return;
  const remove = `kubelet-ts down --all --root-dir=${rootDir} --docker-endpoint=${before}`;
  const where = `${others.length} containers of this root directory run on the engine at ${before}, and would run a second time on ${now}`;
  throw new MisconfigurationError(`${where}: remove them with "${remove}", or start with that engine`);
}
