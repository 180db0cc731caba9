import { readBoundedText } from "../../base/files/whole-file.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import type { ProcessRow } from "../../page/wire.ts";

/** Processes listed of one pod; each costs three small reads. */
const MAX_PROCESSES = 200;
const MAX_FILE_BYTES = 64 * 1024;
/** Unit: UTF-16 code units. */
const MAX_COMMAND = 300;
/** The kernel's clock ticks as user space sees them, on every architecture Docker runs on. */
const TICKS_PER_SECOND = 100;

/** Processes of containers, as `/proc` shows them now; one that has ended meanwhile is left out. */
export function listProcesses(
  containers: readonly { name: string; processIds: readonly string[] }[],
  proc = "/proc",
): ProcessRow[] {
  return containers
    .flatMap(({ name, processIds }) => processIds.map((pid) => ({ name, pid })))
    .slice(0, MAX_PROCESSES)
    .flatMap(({ name, pid }) => {
      const read = (file: string) => readBoundedText(`${proc}/${pid}/${file}`, MAX_FILE_BYTES);
      const parse = () => parseProcess(name, Number(pid), read("stat"), read("status"), readCommand(read));
      return unlessFailed(parse) ?? [];
    });
}

/** "" for arguments that are longer than the limit. */
const readCommand = (read: (file: string) => string): string => unlessFailed(() => read("cmdline")) ?? "";

export function parseProcess(
  container: string,
  pid: number,
  stat: string,
  status: string,
  commandLine: string,
): ProcessRow {
  // The name is in parentheses and may contain parentheses and spaces.
  const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
  // Fields after the name; the first one is number 3.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [userTicks, systemTicks] = [fields[11], fields[12]].map((ticks) => Number(ticks ?? 0));
  const command = commandLine.replaceAll("\0", " ").trim().slice(0, MAX_COMMAND);
  return {
    container,
    pid,
    user: Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? 0),
    state: fields[0]?.[0] ?? "",
    memoryBytes: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024,
    cpuSeconds: (userTicks! + systemTicks!) / TICKS_PER_SECOND,
    command: command || `[${name}]`,
  };
}
