import type { Clock } from "../base/model/clock.ts";
import type { Configuration } from "../base/model/configuration.ts";
import type { Logger } from "../base/model/logger.ts";
import { compareOptions, type KubeletOptions } from "../config/option-table.ts";
import type { ResolvedOptions } from "../config/resolve-options.ts";
import type { PathWatch } from "../sources/path-watch.ts";
import type { ConfigurationTrial } from "./configuration-trial.ts";

interface SettingsReloaderDeps {
  clock: Clock;
  logger: Logger;
  /** In force. Live options are assigned to it: what reads them at each use follows. */
  options: KubeletOptions;
  /** Resolves the command line, environment and files again, or another configuration instead of the files. */
  resolve: (configuration?: Configuration) => Promise<ResolvedOptions>;
  /** Paths of --config and --config-dir; none where one is a pipe, which cannot be read again. */
  paths: readonly string[];
  watch: (onEvent: () => void) => Pick<PathWatch, "arm" | "stop">;
  /** Called after live options have changed. */
  onChanged: (options: KubeletOptions) => void;
}

type SettingsTrial = Pick<ConfigurationTrial, "refusalOf" | "invalid" | "assigned" | "status">;

const DEBOUNCE_MS = 200;

export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/**
 * Takes over changes of the configuration while the kubelet runs: when its files change, and on SIGHUP. An invalid
 * configuration changes nothing. Neither kubelet-ts nor a pod is restarted.
 */
export class SettingsReloader {
  readonly #deps: SettingsReloaderDeps;
  #trial: SettingsTrial | undefined;
  #watch: ReturnType<SettingsReloaderDeps["watch"]> | undefined;
  /** The id of the configuration that was read last. */
  #readId: string | undefined;
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #lastErrors = "";
  #lastRestart = "";

  constructor(deps: SettingsReloaderDeps) {
    this.#deps = deps;
  }

  /** Without one, what is valid is taken over without a trial. */
  setTrial(trial: SettingsTrial): void {
    this.#trial = trial;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { paths, watch } = this.#deps;
    if (paths.length > 0) this.#watch = watch(() => this.#schedule());
    this.#watch?.arm(paths);
    // An edit may have come between the first reading and the watch.
    this.#running = this.#running.then(() => this.#reload("start"));
    await aborted(signal);
    this.#cancel?.();
    this.#watch?.stop();
  }

  /** Reads the configuration again now. Never rejects. */
  reload(): Promise<void> {
    this.#running = this.#running.then(() => this.#reload("user"));
    return this.#running;
  }

  /**
   * Puts the live options of this configuration in force instead of those of the files.
   * @returns options that need a restart
   */
  async rollBackTo(configuration: Configuration): Promise<readonly string[]> {
    const resolved = await this.#deps.resolve(configuration);
    if (resolved.errors.length > 0) throw new Error(resolved.errors.join("; "));
    return this.#takeOver(resolved.options);
  }

  #schedule(): void {
    this.#cancel?.();
    this.#cancel = this.#deps.clock.schedule(DEBOUNCE_MS, () => {
      this.#cancel = undefined;
      this.#running = this.#running.then(() => this.#reload("files"));
    });
  }

  /** @param cause `files`: they may have changed */
  async #reload(cause: "start" | "user" | "files"): Promise<void> {
    const { logger, paths } = this.#deps;
    this.#watch?.arm(paths);
    let resolved: ResolvedOptions;
    try {
      resolved = await this.#deps.resolve();
    } catch (error) {
      logger.error("The configuration could not be read; the previous one stays in force", {
        error: (error as Error).message,
      });
      return;
    }
    const trial = this.#trial;
    const { configuration } = resolved;
    const isAsBefore = configuration !== undefined && configuration.id === this.#readId;
    this.#readId = configuration?.id;
    if (cause === "files" && isAsBefore) return;
    if (cause === "start" && configuration && configuration.id === trial?.status.assigned?.id) return;
    const errors = resolved.errors.join("; ");
    if (errors !== "") {
      if (errors !== this.#lastErrors) {
        logger.error("The new configuration is invalid; the previous one stays in force", { errors });
        if (configuration) trial?.invalid(configuration, errors);
      }
      this.#lastErrors = errors;
      return;
    }
    this.#lastErrors = "";
    const refusal = configuration && trial?.refusalOf(configuration);
    if (refusal !== undefined) {
      logger.warn("The configuration was rejected before and is not tried again; change it", { why: refusal });
      return;
    }
    const needRestart = this.#takeOver(resolved.options);
    const restart = needRestart.join(", ");
    if (restart !== "" && restart !== this.#lastRestart) {
      logger.warn("Some changed settings need a restart of kubelet-ts; pods keep running meanwhile", {
        settings: restart,
      });
    }
    this.#lastRestart = restart;
    if (configuration) trial?.assigned(configuration, resolved.options, needRestart);
  }

  #takeOver(next: KubeletOptions): readonly string[] {
    const { logger, options, onChanged } = this.#deps;
    const { live, needRestart } = compareOptions(options, next);
    if (live.length > 0) {
      Object.assign(options, Object.fromEntries(live.map((name) => [name, next[name]])));
      logger.info("New settings are in force", { settings: live.join(", ") });
      onChanged(options);
    }
    return needRestart;
  }
}
