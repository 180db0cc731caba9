import { existsSync } from "node:fs";
import { openUnixDatagram } from "../base/host/datagram-socket.ts";
import type { LogFields } from "../base/model/logger.ts";

/** Socket of systemd-journald. */
const JOURNAL_SOCKET = "/run/systemd/journal/socket";

/** Priorities of syslog(3). */
export const JOURNAL_PRIORITIES = { error: 3, warn: 4, info: 6, debug: 7 } as const;

/** Hands an entry to the journal. @returns whether it was taken */
export type SendToJournal = (entry: Uint8Array) => boolean;

/** undefined where there is no journal, or Bun may not make code executable. */
export async function openJournal(socket = JOURNAL_SOCKET): Promise<SendToJournal | undefined> {
  if (!existsSync(socket)) return undefined;
  try {
    const sender = await openUnixDatagram(socket);
    return (entry) => sender.send(entry);
  } catch {
    return undefined;
  }
}

/**
 * An entry in the native protocol of systemd-journald: `MESSAGE`, `PRIORITY`, `SYSLOG_IDENTIFIER`, and each field by its
 * name in capitals (`POD`, `CONTAINER`). Source: systemd.io/JOURNAL_NATIVE_PROTOCOL.
 */
export function toJournalEntry(
  level: keyof typeof JOURNAL_PRIORITIES,
  message: string,
  fields: LogFields | undefined,
): Uint8Array {
  const own: [string, string][] = [
    ["PRIORITY", String(JOURNAL_PRIORITIES[level])],
    ["SYSLOG_IDENTIFIER", "kubelet-ts"],
    ["MESSAGE", message],
  ];
  const others = Object.entries(fields ?? {}).flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[toFieldName(key), String(value)]],
  );
  return Buffer.concat([...own, ...others].map(([name, value]) => toField(name, value)));
}

/** `containerId` becomes CONTAINER_ID; a name that the journal or this program uses itself gets a prefix. */
function toFieldName(key: string): string {
  const name = key
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replace(/[^A-Z0-9_]/g, "_");
  const isTaken = /^(_|\d|$)/.test(name) || ["PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE"].includes(name);
  return (isTaken ? `FIELD_${name}` : name).slice(0, 64);
}

/** `NAME=value`, or the form with a length for values of several lines, which cannot forge other fields. */
function toField(name: string, value: string): Buffer {
  if (!value.includes("\n")) return Buffer.from(`${name}=${value}\n`);
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes.length));
  return Buffer.concat([Buffer.from(`${name}\n`), length, bytes, Buffer.from("\n")]);
}
