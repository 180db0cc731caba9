import { type CheckResult, fail, ok, warn } from "./check-result.ts";
import type { EngineFacts, MachineFacts, RouteFacts, UserlandProxyFacts } from "./machine-facts.ts";

export function checkEngine(engine: EngineFacts, network: Pick<MachineFacts, "routes" | "maxPods">): CheckResult[] {
  const { endpoint, problem } = engine;
  if (problem) return [fail("engine", problem.message, engineFix(problem.kind, endpoint))];
  const results = [ok("engine", `Docker ${engine.version}, API ${engine.apiVersion}, at ${endpoint}`)];
  results.push(
    compareVersions(engine.apiVersion, "1.32") < 0
      ? fail("engine API", `${engine.apiVersion} is older than 1.32`, "install Docker 17.12 or newer")
      : ok("engine API", `${engine.apiVersion} is 1.32 or newer`),
  );
  results.push(
    ["overlay2", "overlayfs", "btrfs", "zfs", "fuse-overlayfs", "stargz"].includes(engine.storageDriver)
      ? ok("storage driver", engine.storageDriver)
      : warn(
          "storage driver",
          `${engine.storageDriver} is slow or deprecated`,
          'set "storage-driver": "overlay2" in /etc/docker/daemon.json and restart Docker',
        ),
  );
  results.push(
    ["json-file", "local", "journald"].includes(engine.logDriver)
      ? ok("log driver", engine.logDriver)
      : warn(
          "log driver",
          `${engine.logDriver}: kubelet-ts logs may have nothing to read`,
          'set "log-driver": "json-file" in /etc/docker/daemon.json and restart Docker',
        ),
  );
  const { cgroupDriver, wantedCgroupDriver } = engine;
  results.push(
    wantedCgroupDriver === "" || wantedCgroupDriver === cgroupDriver
      ? ok("cgroup driver", cgroupDriver)
      : fail(
          "cgroup driver",
          `the engine uses ${cgroupDriver}, and --cgroup-driver is ${wantedCgroupDriver}`,
          `remove --cgroup-driver (cgroupDriver in the configuration), or set it to ${cgroupDriver}`,
        ),
  );
  results.push(
    engine.liveRestore
      ? ok("live-restore", "containers outlive a restart of the engine")
      : warn(
          "live-restore",
          "a restart or upgrade of the engine restarts every pod",
          'set "live-restore": true in /etc/docker/daemon.json and run: systemctl reload docker',
        ),
  );
  if (engine.rootless)
    results.push(warn("rootless engine", "host ports below 1024 and some volumes are not available"));
  for (const warning of engine.warnings) results.push(warn("engine", warning.replace(/^WARNING: /, "")));
  results.push(checkUserlandProxy(engine.userlandProxy));
  results.push(...engine.bridgeSubnets.filter(isIpv4Subnet).map((subnet) => checkAddressPool(subnet, network)));
  return results;
}

/** Processes of the proxy from which they are worth a thought; each takes some megabytes. */
const MANY_PROXIES = 50;

function checkUserlandProxy({ isOn, hasIptables, processes }: UserlandProxyFacts): CheckResult {
  const name = "userland proxy";
  if (!isOn && !hasIptables) {
    return fail(
      name,
      "off, and so are the engine's firewall rules: host ports of pods do not answer",
      'set "userland-proxy": true in /etc/docker/daemon.json and restart Docker',
    );
  }
  if (isOn && hasIptables && processes >= MANY_PROXIES) {
    return warn(
      name,
      `${processes} processes of docker-proxy, one for each host port`,
      'set "userland-proxy": false in /etc/docker/daemon.json and restart Docker',
    );
  }
  return ok(name, isOn ? "on" : "off: firewall rules forward host ports");
}

/** Whether the pods' addresses suffice, and are not those of other machines. */
function checkAddressPool(subnet: string, { routes, maxPods }: Pick<MachineFacts, "routes" | "maxPods">): CheckResult {
  const name = "address pool";
  const fix = 'set "bip" in /etc/docker/daemon.json to a free network, as in "10.99.0.1/16", and restart Docker';
  const overlap = routes.find((route) => isOverlap(route, subnet));
  if (overlap) {
    const text = `pods get addresses of ${subnet}, and ${overlap.device} leads to ${overlap.subnet}: pods do not reach machines there`;
    return warn(name, text, fix);
  }
  // The network's own address, the bridge and the broadcast address.
  const addresses = 2 ** (32 - prefixOf(subnet)) - 3;
  if (addresses < maxPods) return warn(name, `${subnet} has ${addresses} addresses for up to ${maxPods} pods`, fix);
  return ok(name, subnet);
}

const isIpv4Subnet = (subnet: string) => /^[\d.]+\/\d+$/.test(subnet);
const prefixOf = (subnet: string) => Number(subnet.slice(subnet.indexOf("/") + 1));

function isOverlap({ subnet }: RouteFacts, other: string): boolean {
  const shorter = Math.min(prefixOf(subnet), prefixOf(other));
  const networkOf = (text: string) => Math.floor(toNumber(text.slice(0, text.indexOf("/"))) / 2 ** (32 - shorter));
  return networkOf(subnet) === networkOf(other);
}

const toNumber = (address: string) => address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);

function engineFix(kind: string, endpoint: string): string {
  switch (kind) {
    case "no-permission":
      return "sudo usermod -aG docker $USER, then log in again; or use sudo";
    case "no-socket":
      if (endpoint.includes("/run/user/")) {
        return "dockerd-rootless-setuptool.sh install makes a rootless engine; with the machine's engine: sudo kubelet-ts install";
      }
      return `install Docker (apt-get install docker.io), or name its socket with --docker-endpoint (now ${endpoint})`;
    case "refused":
      return "systemctl start docker; journalctl -u docker -n 50";
    default:
      return "systemctl status docker; journalctl -u docker -n 50";
  }
}

/** Compares numbers, not letters: `1.9` is older than `1.32`. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split(".").map(Number));
  for (let index = 0; index < Math.max(left!.length, right!.length); index++) {
    const difference = (left![index] ?? 0) - (right![index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
