import { closeSync, constants, createReadStream, openSync, readSync } from "node:fs";
import type { Readable } from "node:stream";
import { openFile } from "../files/whole-file.ts";
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
  open: (path: string, seen: number) => Readable = openLog,
): (() => void) | undefined {
  let seen: number;
  try {
    using log = openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
    seen = readSequences(log.descriptor);
  } catch (error) {
    logger.warn("The kernel's log cannot be read: OOM kills are known from the engine and the counters of cgroups", {
      path,
      error: messageOf(error),
    });
    return undefined;
  }
  let stream: Readable;
  const follow = () => {
    stream = open(path, seen);
    stream.on("data", (chunk) => {
      const record = parseKernelRecord(String(chunk));
      // The log may be read from its oldest record.
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

/** The log behind the record that was seen: thousands of older ones would be a third of a start. A read gives one record. */
function openLog(path: string, seen: number): Readable {
  let fd = openSync(path, "r");
  // Where that record was overwritten, those behind it are read again.
  if (readSequences(fd, seen) > seen) {
    closeSync(fd);
    fd = openSync(path, "r");
  }
  return createReadStream(path, { fd, highWaterMark: 8192, encoding: "utf8" });
}

/** Reads up to this record or the end. @returns the sequence number of the last one, -1 for none @throws when it is no log */
function readSequences(descriptor: number, end = Number.POSITIVE_INFINITY): number {
  const buffer = Buffer.alloc(8192);
  let last = -1;
  try {
    while (last < end) {
      const length = readSync(descriptor, buffer, 0, buffer.length, null);
      // The kernel's log has no end: it says EAGAIN. System containers are often given /dev/null in its place.
      if (length === 0) throw new Error("it is not the kernel's log");
      last = Number(/,(\d+),/.exec(buffer.toString("latin1", 0, Math.min(length, 40)))?.[1] ?? last);
    }
    return last;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN" || code === "EPIPE") return last;
    throw error;
  }
}
