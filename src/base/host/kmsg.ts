import { constants, createReadStream, readSync } from "node:fs";
import type { Readable } from "node:stream";
import { openFile } from "../files/open-file.ts";
import type { Logger } from "../model/logger.ts";
import { messageOf } from "../text/error-message.ts";

/** One line of the kernel's log. */
export interface KernelRecord {
  /** Grows by 1 with each record since the machine started. */
  sequence: number;
  message: string;
}

export const KMSG_PATH = "/dev/kmsg";

/** A record as it is read from /dev/kmsg: `6,1234,5678901,-;message`, then lines of `KEY=value`. undefined for anything else. */
export function parseKernelRecord(text: string): KernelRecord | undefined {
  const match = /^\d+,(\d+),[^;]*;([^\n]*)/.exec(text);
  if (!match) return undefined;
  return { sequence: Number(match[1]), message: unescapeMessage(match[2]!) };
}

// The kernel writes bytes that are not printable as \xNN.
const unescapeMessage = (text: string) =>
  text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/**
 * Reports each record that the kernel logs from now on. Where the log may not be read, that is logged once.
 * @param open for tests
 * @returns ends it; undefined where the log cannot be read
 */
export function followKernelLog(
  onRecord: (record: KernelRecord) => void,
  logger: Logger,
  path: string = KMSG_PATH,
  open: (path: string) => Readable = openLog,
): (() => void) | undefined {
  let seen: number;
  try {
    seen = readLastSequence(path);
  } catch (error) {
    logger.warn("The kernel's log cannot be read: OOM kills are known from the engine and the counters of cgroups", {
      path,
      error: messageOf(error),
    });
    return undefined;
  }
  let stream: Readable;
  const follow = () => {
    stream = open(path);
    stream.on("data", (chunk) => {
      const record = parseKernelRecord(String(chunk));
      // The log is always read from its oldest record.
      if (!record || record.sequence <= seen) return;
      seen = record.sequence;
      onRecord(record);
    });
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // Records were overwritten before we read them. The next ones are there, but a stream ends with its first error.
      if (error.code === "EPIPE") follow();
      else logger.warn("The kernel's log can no longer be read", { path, error: error.message });
    });
  };
  follow();
  return () => stream.destroy();
}

/** A read gives exactly one record, if there is room for it. */
const openLog = (path: string) => createReadStream(path, { highWaterMark: 8192, encoding: "utf8" });

/** Sequence number of the newest record, -1 when there is none. @throws when the log cannot be opened, or is none. */
function readLastSequence(path: string): number {
  using log = openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(8192);
  let last = -1;
  try {
    for (;;) {
      const length = readSync(log.descriptor, buffer, 0, buffer.length, null);
      // The kernel's log has no end: it says EAGAIN. System containers are often given /dev/null in its place.
      if (length === 0) throw new Error("it is not the kernel's log");
      last = parseKernelRecord(buffer.toString("utf8", 0, length))?.sequence ?? last;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN" || code === "EPIPE") return last;
    throw error;
  }
}
