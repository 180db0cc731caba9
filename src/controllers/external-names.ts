import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";

/** Addresses of a name for this machine. Throws when there are none. */
type LookUpName = (name: string) => Promise<string[]>;

interface ExternalNamesDeps {
  clock: Clock;
  logger: Logger;
  lookUp: LookUpName;
}

const REFRESH_MS = 60_000;
/** A machine that boots without a network has one soon. */
const RETRY_MS = 10_000;
/** A name server that does not respond delays the names of other Services by at most this time. */
const PATIENCE_MS = 5_000;
const MAX_NAMES = 200;

interface Known {
  addresses: readonly string[];
  /** The last attempt failed; the addresses are those of the one before. */
  failure?: string;
}

/**
 * Addresses of the names that Services of type ExternalName lead to, looked up every minute. A look-up that fails changes
 * nothing. Without names there is no timer.
 */
export class ExternalNames {
  readonly #deps: ExternalNamesDeps;
  readonly #known = new Map<string, Known>();
  #names: ReadonlySet<string> = new Set();
  #onChange = () => {};
  #cancelTimer: (() => void) | undefined;
  readonly #inProgress = new Set<string>();

  constructor(deps: ExternalNamesDeps) {
    this.#deps = deps;
  }

  /** Calls back when an address has changed, or a name has had its first response. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** The names that are looked up from now on; those beyond 200 are left out. */
  setNames(wanted: ReadonlySet<string>): void {
    const names = new Set([...wanted].sort().slice(0, MAX_NAMES));
    if (names.size === this.#names.size && [...names].every((name) => this.#names.has(name))) return;
    this.#names = names;
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    this.#lookUpAll();
  }

  /** Whether a name has had no response yet. */
  get isPending(): boolean {
    return [...this.#names].some((name) => !this.#known.has(name));
  }

  addressesOf(name: string): readonly string[] {
    return this.#known.get(name)?.addresses ?? [];
  }

  stop(): void {
    this.setNames(new Set());
  }

  #lookUpAll(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#names.size === 0) return;
    for (const name of this.#names) void this.#lookUp(name);
    this.#cancelTimer = this.#deps.clock.schedule(PATIENCE_MS, () => this.#giveUp());
  }

  async #lookUp(name: string): Promise<void> {
    if (this.#inProgress.has(name)) return;
    this.#inProgress.add(name);
    let found: Known;
    try {
      found = { addresses: [...new Set(await this.#deps.lookUp(name))].sort() };
    } catch (error) {
      found = { addresses: this.addressesOf(name), failure: messageOf(error) };
    }
    this.#inProgress.delete(name);
    if (this.#names.has(name)) this.#learn(name, found);
  }

  #learn(name: string, found: Known): void {
    const before = this.#known.get(name);
    this.#known.set(name, found);
    if (found.failure !== undefined && before?.failure === undefined) {
      const kept = found.addresses.length > 0 ? ", its last addresses stay" : "";
      this.#deps.logger.warn(
        `Cannot look up "${name}", which a Service of type ExternalName leads to${kept}: ${found.failure}`,
      );
    }
    if (before && String(before.addresses) === String(found.addresses)) return;
    if (!this.isPending) this.#onChange();
  }

  /** Names without a response count as looked up; late responses still count. */
  #giveUp(): void {
    const failure = `no response within ${PATIENCE_MS / 1000} s`;
    for (const name of this.#names) {
      if (!this.#known.has(name)) this.#learn(name, { addresses: [], failure });
    }
    const hasFailed = [...this.#known.values()].some((known) => known.failure !== undefined);
    const periodMs = hasFailed ? RETRY_MS : REFRESH_MS;
    this.#cancelTimer = this.#deps.clock.schedule(periodMs - PATIENCE_MS, () => this.#lookUpAll());
  }
}
