import type { LogSelection, StreamSelection } from "../base/model/container-access.ts";

/** A parsed query, or the response to an invalid one. */
type Parsed<T> = { value: T } | { status: 400 | 422; problem: string };

interface LogQuery extends Omit<LogSelection, "since"> {
  previous: boolean;
  sinceSeconds?: number;
  sinceTime?: Date;
}

/** Query of `/containerLogs`. Source: core/v1 `PodLogOptions`, `ValidatePodLogOptions` and kubelet's `getContainerLogs`. */
export function parseLogQuery(query: URLSearchParams): Parsed<LogQuery> {
  const undecodable = { status: 400, problem: '{"message": "Unable to decode query."}' } as const;
  const invalid = { status: 422, problem: '{"message": "Invalid request."}' } as const;
  // `tail` is the old name; "all" of it says nothing.
  const old = query.get("tail");
  const tail = old ? (old === "all" ? null : old) : query.get("tailLines");
  const numbers = [tail, query.get("sinceSeconds"), query.get("limitBytes")].map((text) =>
    text === null || text === "" ? undefined : /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN,
  );
  const [tailLines, sinceSeconds, limitBytes] = numbers;
  const flags = ["follow", "previous", "timestamps"].map((name) => parseFlag(query.get(name)));
  const [follow, previous, timestamps] = flags;
  if (numbers.some(Number.isNaN) || follow === undefined || previous === undefined || timestamps === undefined) {
    return undecodable;
  }
  const sinceText = query.get("sinceTime");
  const sinceTime = sinceText ? new Date(sinceText) : undefined;
  if (sinceTime && (Number.isNaN(sinceTime.getTime()) || !/^\d{4}-\d\d-\d\dT/.test(sinceText ?? "")))
    return undecodable;
  const stream = query.get("stream") || "All";
  if (tailLines !== undefined && tailLines < 0) return invalid;
  if (limitBytes !== undefined && limitBytes < 1) return invalid;
  if (sinceSeconds !== undefined && (sinceSeconds < 1 || sinceTime)) return invalid;
  if (!["All", "Stdout", "Stderr"].includes(stream)) return invalid;
  return {
    value: {
      follow,
      previous,
      timestamps,
      stdout: stream !== "Stderr",
      stderr: stream !== "Stdout",
      ...(tailLines !== undefined && { tailLines }),
      ...(limitBytes !== undefined && { limitBytes }),
      ...(sinceSeconds !== undefined && { sinceSeconds }),
      ...(sinceTime && { sinceTime }),
    },
  };
}

/** Absent is false, present without a value is true; undefined: neither yes nor no. Source: apimachinery's conversion of queries. */
function parseFlag(text: string | null): boolean | undefined {
  if (text === null || /^(0|f|F|FALSE|false|False)$/.test(text)) return false;
  return text === "" || /^(1|t|T|TRUE|true|True)$/.test(text) ? true : undefined;
}

/**
 * Query of `/exec` and `/attach`: `input`, `output`, `error` and `tty`; the names the API server has for them (`stdin`,
 * `stdout`, `stderr`) are taken too. Source: kubelet's `remotecommand.NewOptions`.
 */
export function parseStreamQuery(query: URLSearchParams): Parsed<StreamSelection> {
  // Python's client sends `True`.
  const isOn = (...names: string[]) =>
    names.some((name) => ["1", "true"].includes(query.get(name)?.toLowerCase() ?? ""));
  const tty = isOn("tty");
  const streams = {
    stdin: isOn("input", "stdin"),
    stdout: isOn("output", "stdout"),
    // A terminal has one output.
    stderr: isOn("error", "stderr") && !tty,
    tty,
  };
  if (streams.stdin || streams.stdout || streams.stderr) return { value: streams };
  return { status: 400, problem: "you must specify at least 1 of stdin, stdout, stderr" };
}

/** Each port may take a process of its own. */
const MAX_PORTS = 32;

/** Ports of `/portForward`, repeated or with commas. Source: kubelet's `portforward.NewV4Options`. */
export function parsePortQuery(query: URLSearchParams): Parsed<readonly number[]> {
  const texts = [...query.getAll("port"), ...query.getAll("ports")].flatMap((text) => text.split(","));
  if (texts.length === 0) return { status: 400, problem: 'query parameter "port" is required' };
  if (texts.length > MAX_PORTS)
    return { status: 400, problem: `at most ${MAX_PORTS} ports can be forwarded at a time` };
  const ports = texts.map((text) => (/^\d{1,5}$/.test(text) ? Number(text) : Number.NaN));
  const bad = ports.findIndex((port) => !(port >= 1 && port <= 65_535));
  if (bad >= 0) return { status: 400, problem: `port ${JSON.stringify(texts[bad])} must be 1-65535` };
  return { value: ports };
}
