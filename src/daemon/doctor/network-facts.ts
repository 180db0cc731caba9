import { readdirSync } from "node:fs";
import { readTextIfReadable } from "../../base/files/bounded-read.ts";
import type { RouteFacts, UserlandProxyFacts } from "./machine-facts.ts";

const MAX_BYTES = 1 << 20;
/** Devices of container networks. */
const CONTAINER_DEVICE = /^(docker|br-|veth|cni|lo$)/;

/** Routes of IPv4 to networks, without the default route and those of container networks. @param table for tests */
export function readRoutes(table = readTextIfReadable("/proc/net/route", MAX_BYTES) ?? ""): RouteFacts[] {
  return table
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [device = "", destination = "", , , , , , mask = ""] = line.trim().split(/\s+/);
      const prefix = Number.parseInt(mask, 16).toString(2).replaceAll("0", "").length;
      if (device === "" || mask === "00000000" || CONTAINER_DEVICE.test(device)) return [];
      return [{ subnet: `${toAddress(destination)}/${prefix}`, device }];
    });
}

/** The kernel prints addresses as numbers in the order of the machine's bytes. */
const toAddress = (hex: string): string =>
  [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");

/** Settings of the machine's own engine: its configuration file, and the command line that it was started with. */
export function readUserlandProxy(): UserlandProxyFacts {
  const commands = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ pid, name: readTextIfReadable(`/proc/${pid}/comm`, 4096)?.trim() }));
  const engine = commands.find(({ name }) => name === "dockerd");
  const argv = engine ? (readTextIfReadable(`/proc/${engine.pid}/cmdline`, MAX_BYTES) ?? "").split("\0") : [];
  return toUserlandProxy(
    readTextIfReadable("/etc/docker/daemon.json", MAX_BYTES),
    argv,
    commands.filter(({ name }) => name === "docker-proxy").length,
  );
}

/** Pure. @param file daemon.json @param argv of dockerd */
export function toUserlandProxy(
  file: string | undefined,
  argv: readonly string[],
  processes: number,
): UserlandProxyFacts {
  let settings: Record<string, unknown> = {};
  try {
    settings = (JSON.parse(file ?? "{}") ?? {}) as Record<string, unknown>;
  } catch {
    // The engine reports it.
  }
  const isOff = (name: string) => settings[name] === false || argv.includes(`--${name}=false`);
  return { isOn: !isOff("userland-proxy"), hasIptables: !isOff("iptables"), processes };
}
