import { dirname, join } from "node:path";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { LoggedPod } from "./log-link-files.ts";
import { type LoggedContainer, type LogLinkTask, type LogPlaces, performLogLinkTask } from "./log-link-files.ts";

interface LogLinksOptions extends LogPlaces {
  /** Where the engine keeps the log of a container; "" when it keeps no file. */
  engineLogPath(containerId: string): string;
  log: Logger;
  /** Default: at once, in this thread. */
  perform?: (places: LogPlaces, task: LogLinkTask) => Promise<void> | undefined;
}

/** Where an engine with json-file logs keeps them; reading it would cost an inspect per container. */
export const toEngineLogPath = (dockerRootDir: string, containerId: string) =>
  join(dockerRootDir, "containers", containerId, `${containerId}-json.log`);

/** Changes that may wait for a disk; later ones are dropped. */
const MAX_WAITING = 1_000;

/**
 * The symlinks by which log shippers find a container's log, see {@link performLogLinkTask}. Changes are made one after the
 * other, and are not waited for: a container runs as well without its links. Nothing is thrown; each kind of error is
 * logged once.
 */
export class LogLinks {
  readonly #options: LogLinksOptions;
  readonly #loggedErrors = new Set<string>();
  readonly #waiting: LogLinkTask[] = [];
  #isBusy = false;

  constructor(options: LogLinksOptions) {
    this.#options = options;
  }

  /** Links the log of a container that was just created. */
  create(pod: { metadata: LoggedPod }, containerName: string, restartCount: number, containerId: string): void {
    const engineLog = this.#options.engineLogPath(containerId);
    const { uid, name, namespace } = pod.metadata;
    this.#add({
      kind: "create",
      pod: { uid, name, namespace } as LoggedPod,
      containerName,
      restartCount,
      containerId,
      engineLog,
    });
  }

  /** Removes the links of a container that is removed. */
  removeContainer({ id, name, restartCount }: LoggedContainer, pod: LoggedPod): void {
    this.#add({ kind: "remove-container", container: { id, name, restartCount }, pod });
  }

  /** Removes everything of a pod that is gone. */
  removePod(pod: LoggedPod): void {
    this.#add({ kind: "remove-pod", pod });
  }

  /** Removes links to logs that the engine no longer has: what a process left that was killed. */
  sweep(): void {
    this.#add({ kind: "sweep", engineContainersDir: dirname(dirname(this.#options.engineLogPath("id"))) });
  }

  #add(task: LogLinkTask): void {
    if (this.#options.podLogsDir === "") return;
    if (this.#waiting.length >= MAX_WAITING) return this.#report(new Error(`${MAX_WAITING} changes wait for the disk`));
    this.#waiting.push(task);
    if (!this.#isBusy) this.#next();
  }

  #next(): void {
    const { perform = performAtOnce, podLogsDir, containersLogsDir } = this.#options;
    for (let task = this.#waiting.shift(); task; task = this.#waiting.shift()) {
      try {
        const done = perform({ podLogsDir, containersLogsDir }, task);
        if (!done) continue;
        this.#isBusy = true;
        done
          .catch((error: unknown) => this.#report(error))
          .finally(() => {
            this.#isBusy = false;
            this.#next();
          });
        return;
      } catch (error) {
        this.#report(error);
      }
    }
  }

  #report(error: unknown): void {
    const kind = (error as { code?: string }).code ?? messageOf(error);
    if (this.#loggedErrors.has(kind)) return;
    this.#loggedErrors.add(kind);
    this.#options.log.warn("Links to container logs are not complete", { error: messageOf(error) });
  }
}

function performAtOnce(places: LogPlaces, task: LogLinkTask): undefined {
  performLogLinkTask(places, task);
}
