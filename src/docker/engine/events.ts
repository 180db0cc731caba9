import * as v from "valibot";
import { DockerProtocolError, DockerUnreachableError } from "./docker-error.ts";
import { text, textMap, whole } from "./shapes.ts";

/** Both wire shapes: up to API 1.51 with `status`, `id` and `from` in addition, from 1.52 without. */
const EventLineSchema = v.object({
  Type: text,
  Action: text,
  Actor: v.nullish(v.object({ ID: text, Attributes: textMap }), { ID: "", Attributes: {} }),
  /** Unix seconds. */
  time: whole,
});

/** Something happened at the engine. */
export interface DockerEvent {
  /** container, image, network, volume, daemon, … */
  type: string;
  /** `create`, `start`, `die`, `oom`, `destroy`, `health_status`, `exec_start`, … without its detail. */
  action: string;
  /** The text after the colon of an action: `healthy`, an exec's command line; else "". */
  detail: string;
  /** Container id, image reference, network id, … */
  id: string;
  /** Labels of a container, and `name`, `image`, `exitCode`, `signal`, `container`, … */
  attributes: Readonly<Record<string, string>>;
  /** Unix milliseconds by the engine's clock. */
  timeMs: number;
  /** As `since` of the next request it resumes the stream here; the event itself may be repeated. Unit: seconds, nine decimals. */
  cursor: string;
}

export interface EventsOptions {
  /** A `cursor`, or Unix seconds. Events since then are sent first, then those to come. */
  since?: string | undefined;
  /** e.g. `{ type: ["container"], label: ["kubelet-ts.io/node=a"] }`. */
  filters?: Readonly<Record<string, readonly string[]>> | undefined;
  signal?: AbortSignal | undefined;
  /** The engine has answered: all later events will be delivered. List existing objects now. */
  onOpen?: (() => void) | undefined;
}

/**
 * One line of `/events`.
 * @throws DockerProtocolError
 */
export function parseEvent(line: string): DockerEvent {
  let parsed: v.InferOutput<typeof EventLineSchema>;
  try {
    parsed = v.parse(EventLineSchema, JSON.parse(line));
  } catch (cause) {
    throw new DockerProtocolError("GET /events", `no event: ${line.slice(0, 200)}`, { cause });
  }
  // Nanoseconds exceed what a JavaScript number holds exactly: they are read from the text.
  const nanos = /"timeNano":\s*(\d+)/.exec(line)?.[1];
  const [seconds, fraction] =
    nanos !== undefined && nanos.length > 9
      ? [nanos.slice(0, -9), nanos.slice(-9)]
      : [String(Math.trunc(parsed.time)), "000000000"];
  const colon = parsed.Action.indexOf(": ");
  return {
    type: parsed.Type,
    action: colon < 0 ? parsed.Action : parsed.Action.slice(0, colon),
    detail: colon < 0 ? "" : parsed.Action.slice(colon + 2),
    id: parsed.Actor.ID,
    attributes: parsed.Actor.Attributes,
    timeMs: Number(seconds) * 1000 + Number(fraction.slice(0, 3)),
    cursor: `${seconds}.${fraction}`,
  };
}

/** An engine that ends the stream is going away: for the reader that is a lost connection, not an end. */
export const eventStreamEnded = (where: string) =>
  new DockerUnreachableError(
    "connection-lost",
    "GET /events",
    `The Docker engine at ${where} ended the event stream; it may be restarting`,
  );
