import { join } from "node:path";
import {
  parseSecretFrom,
  SECRET_FROM_ANNOTATION,
  type SecretValueSource,
  secretSourcesOf,
} from "../base/api/annotations.ts";
import type { Secret } from "../base/api/secret.ts";
import { TaskTimeoutError } from "../base/concurrency/worker-pool.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { DesiredState } from "../base/model/desired-pod.ts";
import type { Logger } from "../base/model/logger.ts";
import { PathWatch } from "../sources/path-watch.ts";

/** Source: the API server's limit of a Secret. */
const MAX_VALUE_BYTES = 1024 * 1024;

interface SecretValuesDeps {
  logger: Logger;
  /** `$CREDENTIALS_DIRECTORY` of systemd; undefined when the service has no credentials. */
  credentialsDir: string | undefined;
  /** Contents of a regular file; rejects at a deadline. @throws UnreadableFileError for one that is larger */
  readBytes: (path: string, maxBytes: number) => Promise<Uint8Array>;
  /** The state, its Secrets complete. */
  publish: (state: DesiredState, isComplete: boolean) => void;
}

/**
 * Completes Secrets with the values of files and systemd credentials, and again when a file changes. Values go nowhere
 * but into the published state. Without such Secrets a state passes through at once.
 */
export class SecretValues {
  readonly #deps: SecretValuesDeps;
  readonly #changes: ChangeLogger;
  readonly #watches = new Map<string, PathWatch>();
  #last: [state: DesiredState, isComplete: boolean] | undefined;
  #round = 0;

  constructor(deps: SecretValuesDeps) {
    this.#deps = deps;
    this.#changes = new ChangeLogger(deps.logger);
  }

  /** A source has changed. */
  setDesired(state: DesiredState, isComplete: boolean): void {
    this.#last = [state, isComplete];
    const round = ++this.#round;
    const wanted = [...state.secrets].filter(([, secret]) => secret.metadata.annotations?.[SECRET_FROM_ANNOTATION]);
    if (wanted.length === 0) {
      this.stop();
      this.#deps.publish(state, isComplete);
      return;
    }
    void this.#complete(state, wanted).then((secrets) => {
      // A newer state is on its way.
      if (round === this.#round) this.#deps.publish({ ...state, secrets }, isComplete);
    });
  }

  stop(): void {
    for (const watch of this.#watches.values()) watch.stop();
    this.#watches.clear();
  }

  async #complete(state: DesiredState, wanted: readonly [string, Secret][]): Promise<Map<string, Secret>> {
    const secrets = new Map(state.secrets);
    /** To be watched; a path on a file system that does not answer is left out. */
    const paths = new Set<string>();
    for (const [fullName, secret] of wanted) {
      const parsed = parseSecretFrom(secret.metadata.annotations?.[SECRET_FROM_ANNOTATION] ?? "");
      this.#report(fullName, "", "problem" in parsed ? parsed.problem : undefined);
      const data: Record<string, string> = { ...secret.data };
      for (const source of secretSourcesOf(secret)) {
        const path = this.#pathOf(source);
        const read = await this.#readValue(path);
        if (path !== undefined && !("hangs" in read)) paths.add(path);
        this.#report(fullName, source.key, "problem" in read ? read.problem : undefined);
        if ("value" in read) data[source.key] = read.value;
      }
      secrets.set(fullName, { ...secret, data });
    }
    this.#watch(paths);
    return secrets;
  }

  #pathOf({ kind, name }: SecretValueSource): string | undefined {
    if (kind === "file") return name;
    const { credentialsDir } = this.#deps;
    return credentialsDir === undefined ? undefined : join(credentialsDir, name);
  }

  #report(fullName: string, key: string, problem: string | undefined): void {
    const subject = `Secret "${fullName}"${key === "" ? "" : `, key ${key}`}`;
    if (problem === undefined) this.#changes.resolve(subject, `${subject}: its value is there`);
    else this.#changes.log(subject, "warn", `${subject}: ${SECRET_FROM_ANNOTATION}: ${problem}`);
  }

  #watch(paths: ReadonlySet<string>): void {
    for (const [path, watch] of this.#watches) {
      if (paths.has(path)) continue;
      watch.stop();
      this.#watches.delete(path);
    }
    const readAgain = () => this.#last && this.setDesired(...this.#last);
    let isNew = false;
    for (const path of paths) {
      const watch = this.#watches.get(path) ?? new PathWatch(path, readAgain);
      this.#watches.set(path, watch);
      if (watch.arm()) isNew = true;
    }
    // An edit between the read and the watch was not reported.
    if (isNew) readAgain();
  }

  /** Base64 of a file. A line end at its end counts: a value is what the file holds. */
  async #readValue(
    path: string | undefined,
  ): Promise<{ value: string } | { problem: string } | { problem: string; hangs: true }> {
    if (path === undefined) {
      return { problem: "the service has no credentials: add LoadCredential= to the unit of kubelet-ts" };
    }
    try {
      const bytes = await this.#deps.readBytes(path, MAX_VALUE_BYTES);
      return { value: Buffer.from(bytes).toString("base64") };
    } catch (error) {
      if (error instanceof TaskTimeoutError) {
        return { problem: `"${path}" cannot be read: ${error.message}`, hangs: true };
      }
      if ((error as Error).name === "UnreadableFileError") {
        return { problem: `"${path}" ${(error as Error).message}` };
      }
      const { code } = error as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "there is no such file" : (code ?? "unknown");
      return { problem: `"${path}" cannot be read: ${why}` };
    }
  }
}
