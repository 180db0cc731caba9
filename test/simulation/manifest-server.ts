import type { EngineResponse } from "./engine-model.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Ways in which a response is not what people want. None of them is evidence. */
type Lie = (text: string, random: SeededRandom) => EngineResponse | "cut" | "silence";

const LIES: readonly Lie[] = [
  () => ({ status: 304 }),
  () => ({ status: 500 }),
  () => ({ status: 404, text: "404 page not found\n" }),
  () => ({ status: 204 }),
  () => ({ status: 200, text: "" }),
  () => ({ status: 200, text: "<html><body>Please log in: <a href='/'>here</a></body></html>" }),
  () => ({ status: 200, text: "\u0000\u0001 not: [text" }),
  () => ({ status: 302, headers: { location: "http://manifests.test/elsewhere" } }),
  () => ({ status: 301, headers: { location: "file:///etc/passwd" } }),
  (text, random) => ({ status: 200, text: text.slice(0, random.whole(1, text.length - 3)) }),
  () => "cut",
  () => "silence",
];

/** A server of manifests on another machine, whose responses may be wrong for a while. */
export class ManifestServer {
  static readonly url = "http://manifests.test/pods";
  readonly #random: SeededRandom;
  #text = "";
  #version = 0;
  /** Every response is wrong. */
  isLying = false;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  set text(text: string) {
    this.#text = text;
    this.#version++;
  }

  /** @returns `cut`: half a body, then the connection breaks; `silence`: none */
  respond(condition: string | null): EngineResponse | "cut" | "silence" {
    if (this.isLying) return this.#random.pick(LIES)(this.#text, this.#random);
    const etag = `"${this.#version}"`;
    if (condition === etag) return { status: 304 };
    return { status: 200, text: this.#text, headers: { etag } };
  }

  /** The first half of the text. */
  get half(): string {
    return this.#text.slice(0, this.#text.length / 2);
  }
}
