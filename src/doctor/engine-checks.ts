import { type CheckResult, fail, ok, warn } from "./check-result.ts";
import type { EngineFacts } from "./machine-facts.ts";

export function checkEngine(engine: EngineFacts): CheckResult[] {
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
  const taken = engine.bridgeSubnets.filter((subnet) => subnet.startsWith("169.254."));
  if (taken.length > 0)
    results.push(
      warn(
        "address pool",
        `pods get addresses of ${taken.join()}`,
        'set "default-address-pools" in /etc/docker/daemon.json',
      ),
    );
  return results;
}

function engineFix(kind: string, endpoint: string): string {
  switch (kind) {
    case "no-permission":
      return "sudo usermod -aG docker $USER, then log in again; or use sudo";
    case "no-socket":
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
