import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLogger, LogFile, type LoggerOptions, wantsColor } from "../../src/daemon/logging.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

function logged(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    verbosity: 0,
    format: "text",
    color: false,
    writeStderr: (line) => lines.push(line),
    now: () => new Date("2026-01-02T03:04:05.678Z"),
    ...options,
  });
  return { logger, lines };
}

test.each([
  { verbosity: 0, want: ["error", "warn", "info"] },
  { verbosity: 1, want: ["error", "warn", "info"] },
  { verbosity: 2, want: ["error", "warn", "info", "debug"] },
  { verbosity: 10, want: ["error", "warn", "info", "debug"] },
])("--v=$verbosity shows $want", ({ verbosity, want }) => {
  const { logger, lines } = logged({ verbosity, format: "json" });
  for (const level of ["error", "warn", "info", "debug"] as const) logger[level](level);
  expect(lines.map((line) => JSON.parse(line).level)).toEqual([...want]);
});

test("text: one line, fields behind it, quoted where needed", () => {
  const { logger, lines } = logged();
  logger.info("Started", { pod: "default/web-node1", attempt: 2, why: "no space left", absent: undefined, ok: true });
  expect(lines).toEqual([
    '2026-01-02T03:04:05.678Z INFO  Started pod=default/web-node1 attempt=2 why="no space left" ok=true\n',
  ]);
});

test("JSON: one object per line, which fields cannot forge", () => {
  const { logger, lines } = logged({ format: "json" });
  logger.warn('say "it"\nand more', { pod: "p", level: "forged", msg: "forged" });
  expect(lines[0]!.endsWith("\n")).toBe(true);
  expect(JSON.parse(lines[0]!)).toEqual({
    ts: "2026-01-02T03:04:05.678Z",
    level: "warn",
    msg: 'say "it"\nand more',
    pod: "p",
  });
});

test("control characters of others neither forge lines nor move the cursor", () => {
  const { logger, lines } = logged();
  logger.info("a\nERROR forged\u001b[2J\r\u009b", { x: "b\nc" });
  expect(lines).toEqual(['2026-01-02T03:04:05.678Z INFO  a\\nERROR forged\\x1b[2J\\x0d\\x9b x="b\\nc"\n']);
});

test("equal lines are all written", () => {
  const { logger, lines } = logged();
  for (let n = 0; n < 20; n++) logger.info("again");
  expect(lines).toHaveLength(20);
});

test("colors only on a terminal that wants them", () => {
  expect(wantsColor({}, true)).toBe(true);
  expect(wantsColor({}, false)).toBe(false);
  expect(wantsColor({ NO_COLOR: "1" }, true)).toBe(false);
  expect(wantsColor({ NO_COLOR: "" }, true)).toBe(true);
  expect(wantsColor({ TERM: "dumb" }, true)).toBe(false);
  const { logger, lines } = logged({ color: true });
  logger.error("red");
  expect(lines[0]).toContain("\u001b[31mERROR");
});

describe("--log-dir", () => {
  test("lines go to the file too, without colors; or only there", () => {
    const logDir = join(tempDir(), "logs");
    const { logger, lines } = logged({ logDir, color: true });
    logger.info("one");
    const silent = logged({ logDir, logToStderr: false });
    silent.logger.info("two");
    expect(lines).toHaveLength(1);
    expect(silent.lines).toEqual([]);
    expect(readFileSync(join(logDir, "kubelet-ts.log"), "utf8")).toBe(
      "2026-01-02T03:04:05.678Z INFO  one\n2026-01-02T03:04:05.678Z INFO  two\n",
    );
  });

  test("the file is rotated by size and five are kept", () => {
    const dir = tempDir();
    const file = new LogFile(dir, () => {}, 100);
    for (let n = 0; n < 50; n++) file.write(`${String(n).padStart(39, "0")}\n`);
    expect(readdirSync(dir).sort()).toEqual(["kubelet-ts.log", ...[1, 2, 3, 4].map((n) => `kubelet-ts.log.${n}`)]);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).size).toBeLessThanOrEqual(140);
    expect(readFileSync(join(dir, "kubelet-ts.log"), "utf8")).toContain("49\n");
  });

  test("a directory that cannot be made is reported once, and the terminal gets its lines", () => {
    const base = tempDir();
    writeFileSync(join(base, "file"), "");
    const { logger, lines } = logged({ logDir: join(base, "file/logs") });
    logger.info("one");
    logger.info("two");
    expect(lines.filter((line) => line.includes("ERROR Cannot write the log file"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("INFO"))).toHaveLength(2);
  });

  test("what the file does not take goes to the terminal, every line in the form asked for", () => {
    const base = tempDir();
    writeFileSync(join(base, "file"), "");
    const { logger, lines } = logged({ logDir: join(base, "file/logs"), logToStderr: false, format: "json" });
    logger.info("one");
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      expect.stringContaining("Cannot write the log file"),
      "one",
    ]);
  });
});
