import { basename } from "node:path";
import type { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Logger } from "../base/model/logger.ts";
import type { FileRecord } from "./file-record.ts";
import { describeFinding } from "./source-set.ts";

/** Skipped files that one log line names. */
const SKIPPED_SHOWN = 20;

/** Logs what is new about the files of one source. */
export class ManifestReporter {
  readonly #logger: Logger;
  readonly #facts: ChangeLogger;
  /** Skipped at the last read, by path. */
  #skipped: ReadonlyMap<string, string> = new Map();

  constructor(logger: Logger, facts: ChangeLogger) {
    this.#logger = logger;
    this.#facts = facts;
  }

  /** One line for what is new; hidden files are usual, and of no interest. */
  reportSkipped(skipped: ReadonlyMap<string, string>): void {
    const isNews = (path: string) => this.#skipped.get(path) !== skipped.get(path);
    const news = [...skipped].filter(([path]) => isNews(path));
    this.#skipped = skipped;
    const logger = this.#logger;
    const isHidden = (path: string) => basename(path).startsWith(".");
    for (const [path, reason] of news.filter(([path]) => isHidden(path))) {
      logger.debug(`Manifests: skipped "${path}": ${reason}`);
    }
    const visible = news.filter(([path]) => !isHidden(path));
    if (visible.length === 0) return;
    const shown = visible.slice(0, SKIPPED_SHOWN).map(([path, reason]) => `"${path}" (${reason})`);
    const more = visible.length > shown.length ? ` and ${visible.length - shown.length} more` : "";
    logger.info(`Manifests: skipped ${shown.join(", ")}${more}`);
  }

  /** Logs the findings of a file that are new or gone. */
  report(path: string, record: Pick<FileRecord, "findings" | "stale">): void {
    const facts = this.#facts;
    const said = new Set<string>();
    for (const finding of record.findings) {
      const key = `file:${path}:${finding.document}:${finding.field}:${finding.message}`;
      said.add(key);
      facts.log(key, finding.severity === "error" ? "error" : "warn", describeFinding(finding));
    }
    const staleKey = `file:${path}:stale`;
    if (record.stale.length > 0) {
      said.add(staleKey);
      const names = record.stale.map((name) => `"${name}"`).join(", ");
      facts.log(
        staleKey,
        "warn",
        `${path}: has errors; ${record.stale.length > 1 ? "pods" : "pod"} ${names} ${record.stale.length > 1 ? "stay" : "stays"} as before`,
      );
    } else facts.resolve(staleKey, `${path}: is good again`);
    facts.prune(`file:${path}:`, said);
  }

  reportGone(path: string): void {
    this.#facts.prune(`file:${path}:`, new Set());
    this.#logger.debug(`Manifests: "${path}" is gone`);
  }
}
