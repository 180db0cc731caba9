import type { Clock } from "../../base/model/clock.ts";
import type { Access } from "../../page/wire.ts";
import type { PageFeed, PageSubscriber } from "./page-feed.ts";

/** Below the silence after which a page reconnects. */
const PING_MS = 10_000;
const PING = Buffer.from("event: ping\ndata:\n\n");
const EXPIRED = Buffer.from("event: expired\ndata:\n\n");

/** Server-sent events of one page. A reader that does not keep up gets the whole state again when it has. */
export class EventStream implements PageSubscriber {
  readonly access: Access;
  readonly #clock: Clock;
  readonly #feed: PageFeed;
  readonly #signal: AbortSignal;
  readonly #isAllowed: () => boolean;
  readonly #build: string;
  #next: Uint8Array | undefined;
  #wake: (() => void) | undefined;
  #isBehind = false;

  /**
   * @param signal ends the stream: the client is gone
   * @param isAllowed asked before each message; false ends the stream: the session has expired
   * @param build name of the page's script: an open page learns from it that it is another version's
   */
  constructor(
    clock: Clock,
    feed: PageFeed,
    access: Access,
    signal: AbortSignal,
    isAllowed: () => boolean,
    build: string,
  ) {
    this.#clock = clock;
    this.#feed = feed;
    this.access = access;
    this.#signal = signal;
    this.#isAllowed = isAllowed;
    this.#build = build;
    signal.addEventListener("abort", () => this.#wake?.(), { once: true });
  }

  send(event: "snapshot" | "update", data: string): boolean {
    this.#isBehind = this.#next !== undefined;
    if (this.#isBehind) return false;
    this.#next = Buffer.from(`event: ${event}\ndata: ${data}\n\n`);
    this.#wake?.();
    return true;
  }

  /** Read once, by the server. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    // At once: until then a page does not know whether the server answers.
    yield Buffer.from(`event: build\ndata: ${this.#build}\n\n`);
    const unsubscribe = await this.#feed.subscribe(this);
    try {
      while (!this.#signal.aborted && this.#isAllowed()) {
        const chunk = this.#next;
        this.#next = undefined;
        if (chunk) yield chunk;
        else if (this.#isBehind) this.#feed.resume(this);
        else if (!(await this.#woken())) yield PING;
      }
      if (!this.#signal.aborted) yield EXPIRED;
    } finally {
      unsubscribe();
    }
  }

  /** Resolves with false when nothing happened for the time of a ping. */
  #woken(): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(PING_MS, () => resolve(false));
      this.#wake = () => {
        this.#wake = undefined;
        cancel();
        resolve(true);
      };
    });
  }
}
