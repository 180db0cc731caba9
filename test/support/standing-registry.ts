interface Visit {
  /** Repository that was asked for. */
  image: string;
  atMs: number;
  authorization: string | null;
}

/** A registry that knows no image, and takes its time to say so. Docker speaks to loopback without TLS. */
export class StandingRegistry implements Disposable {
  /** First requests for each image, in their order. */
  readonly visits: Visit[] = [];
  /** Most who waited at the same time. */
  mostWaiting = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #asksForPassword: boolean;
  readonly #server: Bun.Server<undefined>;

  constructor(options: { asksForPassword?: boolean } = {}) {
    this.#asksForPassword = options.asksForPassword ?? false;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      development: false,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
  }

  /** Reference of an image in this registry. */
  reference(image: string): string {
    return `127.0.0.1:${this.#server.port}/${image}:1`;
  }

  /** Lets everybody who waits go away without an image. */
  turnAway(): void {
    for (const go of this.#waiting.splice(0)) go();
  }

  [Symbol.dispose](): void {
    this.turnAway();
    void this.#server.stop(true);
  }

  async #answer({ url, headers, signal }: Request): Promise<Response> {
    const authorization = headers.get("authorization");
    const [, image] = /^\/v2\/(.+)\/manifests\//.exec(new URL(url).pathname) ?? [];
    // Engines differ in what they ask for before they show whom they ask for.
    if (this.#asksForPassword && !authorization) {
      return new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="here"' } });
    }
    if (!image) return new Response("{}");
    if (this.visits.some((visit) => visit.image === image)) return notFound();
    this.visits.push({ image, atMs: performance.now(), authorization });
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.mostWaiting = Math.max(this.mostWaiting, this.#waiting.length);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    return notFound();
  }
}

const notFound = () =>
  new Response(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: "no such image" }] }), { status: 404 });
