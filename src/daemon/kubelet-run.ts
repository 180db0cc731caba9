import type { Configuration } from "../base/model/configuration.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { ResolvedOptions } from "../config/resolve-options.ts";
import type { Servers } from "../server/servers.ts";
import type { ConfigurationStart } from "./choose-configuration.ts";
import type { AppLogger } from "./logging.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** One run of the kubelet, with everything the command line decided. */
export interface KubeletRun {
  options: KubeletOptions;
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  /** As the process was started with it, proxies included. */
  environment: Environment;
  logger: AppLogger;
  /** Resolves the command line and environment again, with the configuration files or with another configuration. */
  resolve: (configuration?: Configuration) => Promise<ResolvedOptions>;
  /** Absent without configuration files, and without trials. */
  configuration: ConfigurationStart | undefined;
  /** Files of --config, and the directory of --config-dir. */
  configPaths: readonly string[];
  /** Aborts on SIGTERM and SIGINT. */
  stop: AbortSignal;
  /** Called when the ports are open, and again with each port that opens later. */
  onServers: (servers: Servers) => void;
}

/** Exit codes of every command. */
export const EXIT = { done: 0, failed: 1, badInput: 2 } as const;
