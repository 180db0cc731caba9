import { messageOf } from "../../base/text/error-message.ts";

/** Source: upstream's `MaxContainerTerminationMessageLength`. */
const TERMINATION_FILE_LIMIT_BYTES = 4096;
/** Source: upstream's `MaxContainerTerminationMessageLogLength` and `…LogLines`. */
const TERMINATION_LOG_LIMIT_BYTES = 2048;
const TERMINATION_LOG_LIMIT_LINES = 80;
/** Shared evenly by the containers of a pod. Source: upstream's `MaxPodTerminationMessageLogLength`. */
const TERMINATION_POD_LIMIT_BYTES = 12 * 1024;

export interface TerminationMessageInput {
  policy: "File" | "FallbackToLogsOnError";
  exitCode: number;
  /** Contents of its terminationMessagePath (at least the end); undefined when there is no such file. */
  file: string | undefined;
  /** Reads the end of its log; called only when needed. */
  readLog: () => Promise<string>;
  /** Containers of the pod, init containers included. */
  containerCount: number;
}

/**
 * The end of its file, or of its log (FallbackToLogsOnError, the file is empty, it failed). Cuts fall between
 * characters. Source: upstream's `getTerminationMessage`.
 */
export async function toTerminationMessage(input: TerminationMessageInput): Promise<string> {
  const share = Math.floor(TERMINATION_POD_LIMIT_BYTES / Math.max(1, input.containerCount));
  const message = lastBytes(input.file ?? "", TERMINATION_FILE_LIMIT_BYTES);
  if (message !== "" || input.policy === "File" || input.exitCode === 0) return firstBytes(message, share);
  try {
    return firstBytes(endOfLog(await input.readLog()), share);
  } catch (error) {
    return firstBytes(`Error on reading termination message from logs: ${messageOf(error)}`, share);
  }
}

function endOfLog(log: string): string {
  const lines = log.split("\n");
  // A line ends with its newline: the empty string after the last one is not a line.
  const complete = lines.at(-1) === "" ? 1 : 0;
  return lastBytes(lines.slice(-TERMINATION_LOG_LIMIT_LINES - complete).join("\n"), TERMINATION_LOG_LIMIT_BYTES);
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function lastBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= limit) return text;
  let start = bytes.length - limit;
  while (isContinuation(bytes[start])) start++;
  return bytes.toString("utf8", start);
}

function firstBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= limit) return text;
  let end = limit;
  while (end > 0 && isContinuation(bytes[end])) end--;
  return bytes.toString("utf8", 0, end);
}
