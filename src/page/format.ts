import type { ContainerPort, Probe } from "../base/api/pod.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `1.5 GiB`; `-` for what is not known. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null || !Number.isFinite(bytes)) return "-";
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Cores as `250m` or `1.5`; `-` for what is not known. */
export function formatCores(cores: number | null | undefined): string {
  if (cores == null || !Number.isFinite(cores)) return "-";
  if (cores >= 1) return cores.toFixed(2);
  const millis = cores * 1000;
  if (millis === 0) return "0";
  return millis >= 10 ? `${Math.round(millis)}m` : `${millis.toFixed(1)}m`;
}

/** Milliseconds since 1970 of an RFC 3339 time; 0 when there is none. */
export const toMs = (time: string | undefined | null): number => (time ? Date.parse(time) || 0 : 0);

const STEPS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
] as const;

/** `5d`, `3h`, `12m`, `40s`; "" for 0. */
export function formatAge(fromMs: number, nowMs: number): string {
  if (fromMs === 0) return "";
  const ms = Math.max(0, nowMs - fromMs);
  for (const [step, unit] of STEPS) if (ms >= step) return `${Math.floor(ms / step)}${unit}`;
  return `${Math.floor(ms / 1000)}s`;
}

/** `in 5h`; `now` for what is due. */
export const formatUntil = (atMs: number, nowMs: number): string =>
  atMs <= nowMs ? "now" : `in ${formatAge(nowMs, atMs)}`;

let timeFormat: Intl.DateTimeFormat | undefined;
let zoneFormat: Intl.DateTimeFormat | undefined;

/** `Nov 22, 2026, 2:03:12 PM`, in the reader's zone; "" for 0. */
export function formatTime(ms: number): string {
  if (ms === 0) return "";
  // Making one takes longer than a row's rendering.
  timeFormat ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  return timeFormat.format(ms);
}

/** For titles: with the zone, and in UTC as commands and logs print it. */
export function formatWholeTime(ms: number): string {
  if (ms === 0) return "";
  zoneFormat ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  return `${zoneFormat.format(ms)} (${new Date(ms).toISOString().replace(/\.000Z$/, "Z")})`;
}

/** `ended at TIME with …`, `last seen TIME, …`, `since TIME` and `… (TIME, 3 times)`: as `kubelet-ts explain` writes facts. */
const FACT_TIME =
  /^(?<before>ended at |last seen |since |its grace period of \d+ s ends at |\S.* \()(?<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?<after> with .*|, (?:once|\d+ times)\)?|)$/s;

/** Takes the time out of a fact; 0 where it has none. */
export function splitFact(text: string): { before: string; at: number; after: string } {
  const { before = text, time = "", after = "" } = FACT_TIME.exec(text)?.groups ?? {};
  return { before, at: Date.parse(time) || 0, after };
}

export const formatPercent = (part: number, whole: number): string =>
  whole > 0 ? `${Math.round((part / whole) * 100)} %` : "-";

/** The file name of a manifest with its line: the directory is on hover, and in the view of the pod. */
export const shortSource = (source: string): string =>
  source.startsWith("/") ? (source.split("/").at(-1) ?? source) : source;

/** `8.0 KiB of 16.0 MiB (0 %)` */
export const formatShare = (used: number, all: number): string =>
  `${formatBytes(used)} of ${formatBytes(all)} (${formatPercent(used, all)})`;

/** `8080 → 80/TCP (http)`, with the address of the host where there is one. */
export function describePort({ name, hostIP = "", hostPort, containerPort, protocol = "TCP" }: ContainerPort): string {
  const host = hostPort ? `${hostIP === "" ? "" : `${hostIP}:`}${hostPort} → ` : "";
  return `${host}${containerPort}/${protocol}${name ? ` (${name})` : ""}`;
}

const MAX_COMMAND_CHARS = 200;

/** As `kubectl describe` writes it; without a host it is the pod's address. */
export function describeTarget({ httpGet, tcpSocket, exec, grpc }: Probe): string {
  if (httpGet) {
    const { scheme = "HTTP", host = "", port, path = "/" } = httpGet;
    const origin = scheme === "HTTPS" || host !== "" ? `${scheme.toLowerCase()}://${host}` : "";
    return `http-get ${origin}:${port}${path.startsWith("/") ? "" : "/"}${path}`;
  }
  if (tcpSocket) return `tcp-socket ${tcpSocket.host ?? ""}:${tcpSocket.port}`;
  if (grpc) return `grpc :${grpc.port}${grpc.service ? ` ${grpc.service}` : ""}`;
  const command = (exec?.command ?? []).join(" ");
  return `exec ${command.length > MAX_COMMAND_CHARS ? `${command.slice(0, MAX_COMMAND_CHARS - 1)}…` : command}`;
}

export function describeTiming(probe: Probe): string {
  const { periodSeconds = 10, timeoutSeconds = 1, failureThreshold = 3, initialDelaySeconds = 0 } = probe;
  const delay = initialDelaySeconds > 0 ? `after ${initialDelaySeconds} s, ` : "";
  return `${delay}every ${periodSeconds} s, timeout ${timeoutSeconds} s, fails after ${failureThreshold}`;
}
