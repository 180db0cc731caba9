import type { Finding } from "../base/model/finding.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ManifestResult } from "../manifest/manifest-result.ts";
import type { ReadText } from "./source-set.ts";

/** A text that is parsed in the background. */
interface Parsing {
  hash: string;
  done: Promise<void>;
  result?: ManifestResult;
}

/** One text of a file. */
export interface ManifestText {
  path: string;
  /** The path is the source itself. */
  isGiven: boolean;
  bytes: Uint8Array;
  hash: string;
}

/** Parses the texts of a source; long ones in the background, one per file. */
export class ManifestParser {
  readonly #read: ReadText;
  readonly #onParsed: () => void;
  readonly #parsing = new Map<string, Parsing>();

  /** @param onParsed a text that is parsed in the background is ready: {@link parse} has its result */
  constructor(read: ReadText, onParsed: () => void) {
    this.#read = read;
    this.#onParsed = onParsed;
  }

  /** Resolves when the next text that is parsed in the background is ready; undefined when there is none. */
  next(): Promise<void> | undefined {
    const open = [...this.#parsing.values()].filter(({ result }) => !result);
    return open.length === 0 ? undefined : Promise.race(open.map(({ done }) => done));
  }

  /** undefined while the text is parsed in the background. */
  parse(text: ManifestText): ManifestResult | undefined {
    if (isBlank(text.bytes)) return blankFile(text);
    const { path, bytes, hash } = text;
    const known = this.#parsing.get(path);
    if (known?.hash === hash) {
      if (known.result) this.#parsing.delete(path);
      return known.result;
    }
    const result = this.#read(bytes, path);
    if (!(result instanceof Promise)) {
      this.#parsing.delete(path);
      return result;
    }
    const parsing: Parsing = {
      hash,
      done: result
        .catch((error: unknown) => failedFile(wholeFile(path, messageOf(error))))
        .then((parsed) => {
          parsing.result = parsed;
          this.#onParsed();
        }),
    };
    this.#parsing.set(path, parsing);
    return undefined;
  }

  forget(path: string): void {
    this.#parsing.delete(path);
  }
}

const isBlank = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));

/** An empty file is what a crash or a full disk leaves. */
function blankFile({ path, isGiven }: ManifestText): ManifestResult {
  const fix = isGiven ? "write a List without items" : "remove the file";
  return failedFile(
    wholeFile(
      path,
      `is empty: a manifest is an object with apiVersion, kind, metadata and spec; to remove its pods, ${fix}`,
    ),
  );
}

const failedFile = (finding: Finding): ManifestResult => ({
  pods: [],
  configMaps: [],
  secrets: [],
  objects: [],
  locations: {},
  findings: [finding],
  results: [],
});

/** A finding about a file as a whole. */
export function wholeFile(file: string, message: string): Finding {
  return { code: "syntax", severity: "error", file, document: 1, line: 1, column: 1, field: "", message };
}
