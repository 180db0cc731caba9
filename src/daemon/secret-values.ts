import { join } from "node:path";
import {
  parseSecretFrom,
  SECRET_FROM_ANNOTATION,
  type SecretValueSource,
  secretSourcesOf,
} from "../base/api/annotations.ts";
import type { Secret } from "../base/api/config-objects.ts";
import { TaskTimeoutError } from "../base/concurrency/worker-pool.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredState, DesiredStateStage } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import { PathWatch } from "../sources/path-watch.ts";

/** Source: the API server's limit of a Secret. */
const MAX_VALUE_BYTES = 1024 * 1024;
/** Files that are not read by then are published later: other pods do not wait for a disk that does not answer. */
const MAX_WAIT_MS = 1000;
/** Network file systems report no changes. */
const READ_AGAIN_MS = 60_000;

interface SecretValuesDeps {
  clock: Pick<Clock, "schedule" | "sleep">;
  logger: Logger;
  /** `$CREDENTIALS_DIRECTORY` of systemd; undefined when the service has no credentials. */
  credentialsDir: string | undefined;
  /** Contents of a regular file; rejects at a deadline. @throws UnreadableFileError for one that is larger */
  readBytes: (path: string, maxBytes: number) => Promise<Uint8Array>;
  /** The state, its Secrets complete but for those of `unreadSecrets`. */
  next: DesiredStateStage;
}

/** A key of a Secret whose value is in a file. */
interface WantedValue {
  fullName: string;
  key: string;
  /** undefined: a credential, and the service has none. */
  path: string | undefined;
}

/**
 * Completes Secrets with the values of files and systemd credentials, and again when a file changes. Values go nowhere
 * but into the published state. A value that cannot be read any more stays as it was. Without such Secrets a state
 * passes through at once.
 */
export class SecretValues {
  readonly #deps: SecretValuesDeps;
  readonly #changes: ChangeLogger;
  readonly #watch = new PathWatch(() => this.#update());
  /** The last values by path. Base64. */
  readonly #values = new Map<string, string>();
  #last: [state: DesiredState, isComplete: boolean] | undefined;
  /** Those that were published last: the same map while they are the same, so that pods make nothing of it again. */
  #secrets: ReadonlyMap<string, Secret> = new Map();
  /** The last state was published. */
  #isPublished = false;
  #round = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: SecretValuesDeps) {
    this.#deps = deps;
    this.#changes = new ChangeLogger(deps.logger);
  }

  /** A source has changed. */
  setDesired(state: DesiredState, isComplete: boolean): void {
    this.#last = [state, isComplete];
    this.#isPublished = false;
    this.#update();
  }

  stop(): void {
    this.#round++;
    this.#cancelTimer?.();
    this.#watch.stop();
  }

  #update(): void {
    const [state, isComplete] = this.#last!;
    const round = ++this.#round;
    const wanted = [...state.secrets].flatMap(([fullName, secret]) => this.#wantedOf(fullName, secret));
    const paths = new Set(wanted.map(({ path }) => path));
    for (const path of this.#values.keys()) if (!paths.has(path)) this.#values.delete(path);
    if (wanted.length === 0) {
      this.#cancelTimer?.();
      this.#watch.arm([]);
      this.#deps.next.setDesired(state, isComplete);
      return;
    }
    const isCurrent = () => round === this.#round;
    const publish = () => isCurrent() && this.#publish(state, isComplete, wanted);
    const reading = this.#read(wanted, isCurrent).then(publish);
    void Promise.race([reading, this.#deps.clock.sleep(MAX_WAIT_MS).then(publish)]);
    this.#cancelTimer?.();
    this.#cancelTimer = this.#deps.clock.schedule(READ_AGAIN_MS, () => this.#update());
  }

  #wantedOf(fullName: string, secret: Secret): WantedValue[] {
    const annotation = secret.metadata.annotations?.[SECRET_FROM_ANNOTATION];
    if (!annotation) return [];
    const parsed = parseSecretFrom(annotation);
    this.#report(fullName, "", "problem" in parsed ? parsed.problem : undefined);
    return secretSourcesOf(secret).map((source) => ({ fullName, key: source.key, path: this.#pathOf(source) }));
  }

  async #read(wanted: readonly WantedValue[], isCurrent: () => boolean): Promise<void> {
    /** To be watched; a path on a file system that does not answer is left out. */
    const paths = new Set<string>();
    await Promise.all(
      wanted.map(async ({ fullName, key, path }) => {
        const read = await this.#readValue(path);
        if (!isCurrent()) return;
        if (path !== undefined && !("hangs" in read)) paths.add(path);
        if (path !== undefined && "value" in read) this.#values.set(path, read.value);
        this.#report(fullName, key, "problem" in read ? read.problem : undefined);
      }),
    );
    // An edit between the read and the watch was not reported.
    if (isCurrent() && this.#watch.arm([...paths])) this.#update();
  }

  /** Publishes what is known, unless it was published. */
  #publish(state: DesiredState, isComplete: boolean, wanted: readonly WantedValue[]): void {
    const secrets = new Map(state.secrets);
    const unreadSecrets = new Set<string>();
    for (const { fullName, key, path } of wanted) {
      const secret = secrets.get(fullName)!;
      const value = this.#values.get(path ?? "");
      if (value !== undefined) secrets.set(fullName, { ...secret, data: { ...secret.data, [key]: value } });
      else unreadSecrets.add(fullName);
    }
    const isSame = Bun.deepEquals(secrets, this.#secrets);
    if (isSame && this.#isPublished) return;
    this.#isPublished = true;
    if (!isSame) this.#secrets = secrets;
    this.#deps.next.setDesired(
      { ...state, secrets: this.#secrets, ...(unreadSecrets.size > 0 && { unreadSecrets }) },
      isComplete,
    );
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
