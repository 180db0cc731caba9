import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openJournal, toJournalEntry } from "../../src/daemon/journal.ts";
import { createLogger } from "../../src/daemon/logging.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();
const textOf = (entry: Uint8Array) => Buffer.from(entry).toString("latin1");

describe("an entry of the journal", () => {
  test("has the message, the priority, and each field by its name in capitals", () => {
    const fields = { pod: "default/web", container: "app", imageId: "x", attempt: 2, absent: undefined };
    expect(textOf(toJournalEntry("warn", "Unhealthy: no", fields))).toBe(
      "PRIORITY=4\nSYSLOG_IDENTIFIER=kubelet-ts\nMESSAGE=Unhealthy: no\nPOD=default/web\nCONTAINER=app\nIMAGE_ID=x\nATTEMPT=2\n",
    );
  });
  test("a value of several lines cannot forge a field", () => {
    const entry = textOf(toJournalEntry("error", "m", { error: "a\nPRIORITY=0" }));
    expect(entry).toEndWith("MESSAGE=m\nERROR\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n");
  });
  test("a field does not take the place of the journal's own", () => {
    const entry = textOf(toJournalEntry("info", "m", { message: "x", _PID: "1", "0": "y", "a-b": "z" }));
    expect(entry).toContain("\nFIELD_MESSAGE=x\nFIELD__PID=1\n");
    expect(entry).toContain("\nFIELD_0=y\n");
    expect(entry).toContain("\nA_B=z\n");
  });
});

function logger(journal?: (entry: Uint8Array) => boolean) {
  const lines: string[] = [];
  const created = createLogger({
    verbosity: 0,
    format: "journald",
    journal,
    color: false,
    writeStderr: (line) => lines.push(line),
    now: () => new Date(),
  });
  return { created, lines };
}

test("without a journal, and when it takes nothing, lines with a priority go to stderr", () => {
  for (const { created, lines } of [logger(), logger(() => false)]) {
    created.error("no\nengine", { pod: "default/web" });
    expect(lines).toEqual(["<3>no\\nengine pod=default/web\n"]);
  }
});

test("there is no journal without its socket", async () => {
  expect(await openJournal(join(tempDir(), "none"))).toBeUndefined();
});

/** Prints the first datagram on a socket at the path. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
sys.stdout.buffer.write(s.recv(65536))
`;

test.skipIf(!Bun.which("python3"))("entries arrive at the socket of the journal, and not on stderr", async () => {
  const path = join(tempDir(), "journal");
  const receiver = Bun.spawn(["python3", "-c", RECEIVER, path], { stdout: "pipe" });
  const reader = receiver.stdout.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toContain("bound");
  const { created, lines } = logger(await openJournal(path));
  created.info("Started", { pod: "default/web" });
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) rest += piece.value;
  expect(rest.trimStart()).toBe("PRIORITY=6\nSYSLOG_IDENTIFIER=kubelet-ts\nMESSAGE=Started\nPOD=default/web\n");
  expect(lines).toEqual([]);
});
