import { isRecord, type Json } from "../../base/text/json.ts";
import { type ImportNotes, textOf } from "./import-notes.ts";

const MAX_PORTS = 1000;

/** `ports` and `expose` of a service as container ports. */
export function toContainerPorts(ports: Json, expose: Json, path: string, notes: ImportNotes): object[] {
  const result = (Array.isArray(ports) ? ports : []).flatMap((port, index) =>
    toPorts(port, `${path}.ports[${index}]`, notes),
  );
  const taken = new Set(result.map((port) => JSON.stringify([port.containerPort, port.protocol])));
  for (const port of Array.isArray(expose) ? expose : []) {
    const [number = "", protocol = "tcp"] = (textOf(port) ?? "").split("/");
    for (const containerPort of toRange(number)) {
      const key = JSON.stringify([containerPort, protocol.toUpperCase()]);
      if (!taken.has(key)) result.push({ containerPort, protocol: protocol.toUpperCase() });
      taken.add(key);
    }
  }
  return result.map(({ protocol, ...port }) => ({ ...port, ...(protocol !== "TCP" && { protocol }) }));
}

interface Port {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol: string;
}

function toPorts(port: Json, path: string, notes: ImportNotes): Port[] {
  const parts = isRecord(port)
    ? {
        target: textOf(port.target),
        published: textOf(port.published),
        ip: textOf(port.host_ip),
        protocol: textOf(port.protocol),
      }
    : parseShort(textOf(port) ?? "");
  const targets = toRange(parts.target ?? "");
  const published = toRange(parts.published ?? "");
  const protocol = (parts.protocol ?? "tcp").toUpperCase();
  if (targets.length === 0 || !["TCP", "UDP", "SCTP"].includes(protocol)) {
    notes.add(path, "is not a port and is not carried over");
    return [];
  }
  if (published.length === 0)
    notes.add(path, "has no published port, which Docker would choose: set hostPort to publish it");
  else if (published.length !== targets.length) {
    notes.add(path, `has ${published.length} published ports for ${targets.length}: the first ones are used`);
  }
  return targets.map((containerPort, index) => ({
    containerPort,
    protocol,
    ...(published[index] !== undefined && { hostPort: published[index] }),
    ...(published[index] !== undefined && parts.ip && parts.ip !== "0.0.0.0" && { hostIP: parts.ip }),
  }));
}

/** `[[ip:]published:]target[/protocol]`. */
function parseShort(text: string) {
  const [address = "", protocol] = text.split("/");
  const match = /^(?:(?:(\[[^\]]*\]|[^:]*):)?([^:]*):)?([^:]+)$/.exec(address);
  return { ip: match?.[1]?.replace(/^\[|\]$/g, ""), published: match?.[2], target: match?.[3], protocol };
}

/** `80` or `3000-3005`. */
function toRange(text: string): number[] {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text.trim());
  if (!match) return [];
  const first = Number(match[1]);
  const last = Number(match[2] ?? match[1]);
  if (first < 1 || last > 65_535 || last < first || last - first >= MAX_PORTS) return [];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
