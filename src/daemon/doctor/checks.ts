import { ARCHITECTURE } from "../../base/host/node-info.ts";
import { apiAtLeast } from "../../base/text/api-version.ts";
import { PUBLISHED } from "../../plan/service-rules.ts";
import { fixOfStep } from "../../plan/waiting-reasons.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { findMissingControllers } from "../../stats/cgroups/cgroup-layout.ts";
import { OTHER_SERVICE_MANAGER } from "../install/install-files.ts";
import type { ImageFacts, MachineFacts } from "./gather-facts.ts";

type CheckStatus = "ok" | "warn" | "fail";

/** Outcome of one check. */
export interface CheckResult {
  /** Lower case words: `engine`, `cgroups`, `port 10255`. */
  name: string;
  status: CheckStatus;
  /** The finding. */
  message: string;
  /** Command or setting that fixes it; absent when there is nothing to fix. */
  fix?: string;
}

export const isFailure = ({ status }: CheckResult): boolean => status === "fail";

/** A failure that may keep a kubelet from starting: manifests and images do not. */
export const isReasonNotToStart = ({ status, name }: CheckResult): boolean =>
  status === "fail" && name !== "manifests" && !name.startsWith("image ");

const result =
  (status: CheckStatus) =>
  (name: string, message: string, fix?: string): CheckResult => ({ name, status, message, ...(fix && { fix }) });
const ok = result("ok");
const warn = result("warn");
const fail = result("fail");

const DAY_MS = 86_400_000;

/** All checks, in the order in which a person fixes things. Pure. */
export function runChecks(facts: MachineFacts): CheckResult[] {
  return [
    ...checkConfiguration(facts),
    ...checkEngine(facts.engine, facts),
    ...checkKernel(facts),
    checkCpu(facts),
    checkNodeName(facts.node),
    ...facts.disks.map(checkDisk),
    ...checkClock(facts),
    checkNameservers(facts),
    ...facts.ports.map(checkPort),
    checkOrchestrators(facts),
    ...checkManifests(facts),
    ...facts.images.map(checkImage),
    ...facts.certificates.map((certificate) => checkCertificate(certificate, facts.nowMs)),
    ...checkUnit(facts),
  ];
}

function checkConfiguration({ configuration }: MachineFacts): CheckResult[] {
  if (!configuration) return [];
  const { errors, rejected } = configuration;
  if (errors.length > 0) {
    return errors.map((error) =>
      fail("configuration", error, "correct the file; kubelet-ts config --config FILE checks it"),
    );
  }
  if (rejected !== undefined) {
    return [warn("configuration", `rejected, the last known good one is used: ${rejected}`, "correct the file")];
  }
  return [ok("configuration", "valid")];
}

function checkKernel(facts: MachineFacts): CheckResult[] {
  const { engine, cgroupControllers, swapBytes, inotifyInstances: instances, inotifyWatches: watches } = facts;
  const missing = findMissingControllers(cgroupControllers);
  // An engine that does not answer tells neither.
  const cgroups = `${engine.cgroupVersion && `version ${engine.cgroupVersion}, `}${engine.cgroupDriver && `driver ${engine.cgroupDriver}, `}`;
  const asRoot = "start kubelet-ts with CAP_SYS_RESOURCE (a container: --cap-add=SYS_RESOURCE)";
  const few = `only ${instances} instances and ${watches} watches: changes of manifests may be seen late`;
  const noPsi = "the kernel does not report PSI; the page and metrics lack it";
  const noScores = "the kernel refuses negative ones (no CAP_SYS_RESOURCE): guaranteed pods are not protected";
  return [
    missing ? fail("cgroups", missing.problem, missing.fix) : ok("cgroups", `${cgroups}with cpu, memory, pids`),
    facts.hasPsi
      ? ok("pressure information", "the kernel reports PSI")
      : warn("pressure information", noPsi, "boot with psi=1"),
    swapBytes > 0 && facts.failSwapOn
      ? fail("swap", "swap is on, and --fail-swap-on is set", "swapoff -a, or remove --fail-swap-on")
      : ok("swap", swapBytes > 0 ? `${formatBytes(swapBytes)} of swap, which is allowed` : "off"),
    instances >= 128 && watches >= 8192
      ? ok("inotify", `${instances} instances, ${watches} watches for each user`)
      : warn("inotify", few, "sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=65536"),
    facts.pidMax >= 32_768
      ? ok("process ids", `up to ${facts.pidMax}`)
      : warn("process ids", `only ${facts.pidMax}`, "sysctl -w kernel.pid_max=4194304"),
    facts.ipForward
      ? ok("ip_forward", "on")
      : fail("ip_forward", "off: pods have no network beyond this machine", "sysctl -w net.ipv4.ip_forward=1"),
    ...(facts.bridgeNetfilter === false
      ? [warn("br_netfilter", "firewall rules do not see traffic between pods", BRIDGE_NETFILTER)]
      : []),
    facts.serviceProblem === undefined
      ? ok("services", "have addresses, by rules of iptables")
      : warn(
          "services",
          `have no addresses, their names lead to pods: ${facts.serviceProblem}`,
          fixOfRules(facts.serviceProblem),
        ),
    ...(facts.serviceProblem === undefined && engine.firewall.startsWith("nftables") && !engine.settings.hasMark
      ? [warn("services", NFTABLES, daemonJson(`"bridge-accept-fwmark": "${PUBLISHED}"`))]
      : []),
    ...facts.staleRules.map((rootDir) =>
      warn(
        "services",
        `there are rules of a kubelet-ts whose root directory ${rootDir} is gone`,
        `kubelet-ts down --all --root-dir=${rootDir}`,
      ),
    ),
    facts.mayLowerOomScores
      ? ok("OOM scores", "may be lowered")
      : warn("OOM scores", noScores, facts.isRoot ? asRoot : "run as root"),
  ];
}

const fixOfRules = (problem: string): string => {
  if (problem.startsWith("--")) return "remove that flag to give them addresses";
  if (/\btable\b/i.test(problem))
    return "load the kernel's tables: modprobe nft_chain_nat, or iptable_nat for iptables-legacy";
  return "install iptables, and run kubelet-ts as root (a container: --cap-add=NET_ADMIN --network=host)";
};
const BRIDGE_NETFILTER = "sysctl -w net.bridge.bridge-nf-call-iptables=1";

function checkCpu({ binaryTarget, cpuFlags }: MachineFacts): CheckResult {
  if (/^x64(-musl)?$/.test(binaryTarget) && cpuFlags.length > 0 && !cpuFlags.includes("avx2")) {
    return fail("CPU", "has no AVX2, which this binary needs", "use kubelet-ts-linux-x64-baseline");
  }
  return ok("CPU", `runs ${binaryTarget} binaries`);
}

function checkNodeName({ name, last, machine }: MachineFacts["node"]): CheckResult {
  const change = `the node was ${last} and is ${name} from the next start on: pods of manifests are replaced`;
  if (name !== last) return warn("node name", change, `--hostname-override=${last} keeps the name`);
  if (name === machine) return ok("node name", name);
  const fix = `--hostname-override=${machine} renames it and replaces its pods, --hostname-override=${name} keeps the name`;
  return warn("node name", `the node is ${name}, and this machine is called ${machine}`, fix);
}

function checkDisk({ name, path, capacity, isReadOnly }: MachineFacts["disks"][number]): CheckResult {
  const label = `disk of ${name}`;
  if (!capacity) return fail(label, `${path} cannot be examined`, `mkdir -p ${path}`);
  if (isReadOnly) {
    const fix = `mount -o remount,rw "$(findmnt -no TARGET -T ${path})", or another directory`;
    return fail(label, `${path} is on a read-only file system: new pods cannot start`, fix);
  }
  const { capacityBytes, availableBytes: freeBytes, inodes, inodesFree } = capacity;
  if (capacityBytes === 0) return fail(label, `the file system of ${path} holds no files`, "choose another directory");
  const percentFree = (freeBytes / capacityBytes) * 100;
  const text = `${path}: ${formatBytes(freeBytes)} of ${formatBytes(capacityBytes)} free`;
  if (inodes > 0 && inodesFree / inodes < 0.05) {
    return fail(
      label,
      `${path}: ${inodesFree} of ${inodes} inodes free: pods are evicted below 5 %`,
      `find ${path} -xdev | cut -d/ -f1-5 | sort | uniq -c | sort -n | tail`,
    );
  }
  const isOfImages = name === "images";
  if (percentFree < 10) {
    const fix = isOfImages ? "docker system df; docker image prune" : `du -xh --max-depth=2 ${path} | sort -h | tail`;
    return fail(label, `${text}: pods are evicted below 10 %`, fix);
  }
  if (percentFree < 15 && isOfImages)
    return warn(label, `${text}: images are evicted below 15 %`, "docker image prune");
  return ok(label, text);
}

function checkClock({ nowMs, buildMs, clockSynchronized, timeZone }: MachineFacts): CheckResult[] {
  const now = new Date(nowMs).toISOString();
  const early = `${now} is before this program was built: certificates of registries are not valid yet`;
  const zoneFix = "timedatectl set-timezone ZONE, or correct TZ";
  return [
    nowMs < buildMs - DAY_MS
      ? fail("clock", early, "timedatectl set-ntp true, or hwclock --hctosys")
      : clockSynchronized === false
        ? warn("clock", "not synchronized: schedules and certificates depend on it", "timedatectl set-ntp true")
        : ok("clock", now),
    timeZone.problem
      ? warn("time zone", `${timeZone.problem}: schedules run in UTC`, zoneFix)
      : ok("time zone", timeZone.name),
  ];
}

function checkNameservers({ nameservers }: MachineFacts): CheckResult {
  const none = "/etc/resolv.conf has no nameserver: pods with dnsPolicy Default resolve no names";
  const local = `/etc/resolv.conf names only ${nameservers.join(", ")}, which pods cannot reach`;
  const otherFile = "start kubelet-ts with --resolv-conf=/run/systemd/resolve/resolv.conf";
  if (nameservers.length === 0) return warn("DNS", none, "add a nameserver to /etc/resolv.conf");
  const areLocal = nameservers.every((address) => address.startsWith("127.") || address === "::1");
  return areLocal ? warn("DNS", local, otherFile) : ok("DNS", nameservers.join(", "));
}

function checkPort({ flag, port, state, holder }: MachineFacts["ports"][number]): CheckResult {
  const name = `port ${port}`;
  switch (state) {
    case "free":
      return ok(name, `free (--${flag})`);
    case "own":
      return ok(name, `served by ${holder}`);
    case "unknown":
      return ok(name, "in use; root sees by which program");
    case "taken":
      return warn(name, `in use by ${holder}`, `stop it, or start kubelet-ts with --${flag}=PORT (0 is off)`);
  }
}

function checkOrchestrators({ otherOrchestrators, engine }: MachineFacts): CheckResult {
  const owners = [...new Set(engine.foreignContainers.map(({ owner }) => owner))];
  if (otherOrchestrators.length > 0) {
    return warn(
      "other orchestrators",
      `${otherOrchestrators.join(", ")} also runs here; kubelet-ts touches only its own containers, but both set /kubepods`,
      "stop it, or use one of them only",
    );
  }
  if (owners.length > 0)
    return ok("other orchestrators", `none runs; containers of ${owners.join(", ")} are left alone`);
  return ok("other orchestrators", "none");
}

function checkManifests({ manifests: { paths, findings, unreadable, pods, specs } }: MachineFacts): CheckResult[] {
  if (paths.length === 0) return [warn("manifests", "none are configured", "kubelet-ts --pod-manifest-path=DIRECTORY")];
  const errors = findings.filter(({ severity }) => severity === "error");
  const workloads = specs.length > pods ? `, ${specs.length - pods} workloads` : "";
  if (errors.length + unreadable.length === 0)
    return [ok("manifests", `${pods} pods${workloads} in ${paths.join(", ")}`)];
  return [
    ...unreadable.map(({ path, message }) =>
      fail("manifests", message, `mkdir -p ${path}, or mount its disk; until then its pods stay as they are`),
    ),
    ...errors.map((finding) => fail("manifests", describeFinding(finding), `edit ${finding.file}`)),
  ];
}

function checkCertificate({ path, expiresMs }: { path: string; expiresMs: number }, nowMs: number): CheckResult {
  const name = `certificate ${path}`;
  const when = new Date(expiresMs).toISOString().slice(0, 10);
  if (expiresMs <= nowMs)
    return fail(name, `expired on ${when}`, `replace it, or remove ${path}: kubelet-ts makes a new one`);
  if (expiresMs - nowMs < 30 * DAY_MS) return warn(name, `expires on ${when}`, "replace it before that day");
  return ok(name, `valid until ${when}`);
}

function checkUnit({ unit, hasServiceManager }: MachineFacts): CheckResult[] {
  const start = hasServiceManager ? "sudo kubelet-ts install" : OTHER_SERVICE_MANAGER;
  if (!unit) return [warn("service", "kubelet-ts does not start with this machine", start)];
  const { path, install, problem } = unit;
  if (problem) return [(problem.isFailure ? fail : warn)("service", `${path} ${problem.text}`, problem.fix)];
  if (unit.isEdited) {
    const fix = `systemctl edit kubelet-ts for changes; then remove ${path} and run: ${install}`;
    return [warn("service", `${path} was edited: an upgrade leaves it as it is`, fix)];
  }
  if (!unit.isCurrent) return [warn("service", `${path} is of another version`, install)];
  return [ok("service", path)];
}

const formatBytes = (bytes: number) =>
  bytes < 2 ** 30 ? `${Math.floor(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;

/** Whether the containers of this image can start here. */
function checkImage({ name, present, architecture, pullPolicy, remote }: ImageFacts): CheckResult {
  const label = `image ${name}`;
  const own = ARCHITECTURE;
  if (!present && pullPolicy === "Never") {
    return fail(label, "is not on this machine, and imagePullPolicy is Never", `docker load, or docker pull ${name}`);
  }
  if (remote && "problem" in remote) {
    const state = present ? "imagePullPolicy is Always, and it" : "is not on this machine and";
    const fix = `${fixOfStep("ErrImagePull", remote.problem)}${present ? "; or set imagePullPolicy: IfNotPresent" : ""}`;
    return fail(label, `${state} cannot be pulled: ${remote.problem}`, fix);
  }
  if (remote && remote.architectures.length > 0 && !remote.architectures.includes(own)) {
    const there = [...new Set(remote.architectures)].filter((found) => found !== "unknown").join(", ");
    return fail(label, `the registry has it for ${there}, this machine is ${own}`, "use an image for this machine");
  }
  if (!present) {
    if (remote) return ok(label, "is not on this machine yet; the registry has it");
    return warn(label, "is not on this machine yet and is pulled at the start", `docker pull ${name}`);
  }
  if (architecture !== "" && architecture !== own) {
    return fail(label, `is for ${architecture}, this machine is ${own}`, `docker pull --platform linux/${own} ${name}`);
  }
  return ok(label, remote ? "present, and the registry has it" : "present");
}

function checkEngine(engine: MachineFacts["engine"], network: Pick<MachineFacts, "routes" | "maxPods">): CheckResult[] {
  const { endpoint, problem, apiVersion, storageDriver, logDriver, cgroupDriver, wantedCgroupDriver } = engine;
  if (problem) return [fail("engine", problem.message, engineFix(problem.kind, endpoint))];
  const isUsual = ["overlay2", "overlayfs", "btrfs", "zfs", "fuse-overlayfs", "stargz"].includes(storageDriver);
  const isReadable = ["json-file", "local", "journald"].includes(logDriver);
  const isOtherDriver = wantedCgroupDriver !== "" && wantedCgroupDriver !== cgroupDriver;
  const drivers = `the engine uses ${cgroupDriver}, and --cgroup-driver is ${wantedCgroupDriver}`;
  const driverFix = `remove --cgroup-driver (cgroupDriver in the configuration), or set it to ${cgroupDriver}`;
  const liveRestore = 'set "live-restore": true in /etc/docker/daemon.json and run: systemctl reload docker';
  return [
    ok("engine", `Docker ${engine.version}, API ${apiVersion}, at ${endpoint}`),
    apiAtLeast(apiVersion, "1.32")
      ? ok("engine API", `${apiVersion} is 1.32 or newer`)
      : fail("engine API", `${apiVersion} is older than 1.32`, "install Docker 17.12 or newer"),
    isUsual
      ? ok("storage driver", storageDriver)
      : warn("storage driver", `${storageDriver} is slow or deprecated`, daemonJson('"storage-driver": "overlay2"')),
    isReadable
      ? ok("log driver", logDriver)
      : warn(
          "log driver",
          `${logDriver}: kubelet-ts logs may have nothing to read`,
          daemonJson('"log-driver": "json-file"'),
        ),
    isOtherDriver ? fail("cgroup driver", drivers, driverFix) : ok("cgroup driver", cgroupDriver),
    engine.liveRestore
      ? ok("live-restore", "containers outlive a restart of the engine")
      : warn("live-restore", "a restart or upgrade of the engine restarts every pod", liveRestore),
    ...(engine.rootless ? [warn("rootless engine", "host ports below 1024 and some volumes are not available")] : []),
    ...engine.warnings.map((warning) => warn("engine", warning.replace(/^WARNING: /, ""))),
    checkUserlandProxy(engine.settings),
    ...engine.bridgeSubnets.filter(isIpv4Subnet).map((subnet) => checkAddressPool(subnet, engine, network)),
  ];
}

const daemonJson = (setting: string) => `set ${setting} in /etc/docker/daemon.json and restart Docker`;

/** A rule of iptables cannot accept what another table drops: the engine itself must know the mark. */
const NFTABLES = "the engine's nftables drop what other machines and networks send to ports of Services";

/** From this many processes of the proxy on a warning is given; each takes some megabytes. */
const MANY_PROXIES = 50;

function checkUserlandProxy({ hasProxy, hasIptables, proxies }: MachineFacts["engine"]["settings"]): CheckResult {
  const name = "userland proxy";
  const none = "off, and so are the engine's firewall rules: host ports of pods do not answer";
  if (!hasProxy && !hasIptables) return fail(name, none, daemonJson('"userland-proxy": true'));
  const many = `${proxies} processes of docker-proxy, one for each host port`;
  const hasMany = hasProxy && hasIptables && proxies >= MANY_PROXIES;
  if (hasMany) return warn(name, many, daemonJson('"userland-proxy": false'));
  return ok(name, hasProxy ? "on" : "off: firewall rules forward host ports");
}

/** Whether the pods' addresses suffice, and are not those of other machines. */
function checkAddressPool(
  subnet: string,
  { bridge, bridges }: MachineFacts["engine"],
  { routes, maxPods }: Pick<MachineFacts, "routes" | "maxPods">,
): CheckResult {
  const name = "address pool";
  // The engine refuses to start with both "bip" and "bridge".
  const fix =
    bridge === "docker0"
      ? 'set "bip" in /etc/docker/daemon.json to a free network, as in "10.99.0.1/16", and restart Docker'
      : `give ${bridge} an address of a free network, as in 10.99.0.1/16, where the machine's network is configured, and restart Docker`;
  const overlap = routes.find((route) => !bridges.includes(route.device) && isOverlap(route, subnet));
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

function isOverlap({ subnet }: MachineFacts["routes"][number], other: string): boolean {
  const shorter = Math.min(prefixOf(subnet), prefixOf(other));
  const networkOf = (text: string) => Math.floor(toNumber(text.slice(0, text.indexOf("/"))) / 2 ** (32 - shorter));
  return networkOf(subnet) === networkOf(other);
}

const toNumber = (address: string) => address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);

function engineFix(kind: string, endpoint: string): string {
  if (/^(?!unix:)[a-z]+:/.test(endpoint)) {
    const isTcp = endpoint.startsWith("tcp://");
    return `${isTcp ? `start dockerd with -H ${endpoint}, or ` : ""}unset DOCKER_HOST, or give --docker-endpoint=unix:///var/run/docker.sock`;
  }
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
