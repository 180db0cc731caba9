import { isLasting, PROBE_PERIOD_SECONDS, type WantedPod } from "./desired.ts";
import type { ModelContainer } from "./engine-model.ts";
import { NODE_IP, ROOT_DIR, type World } from "./world.ts";

interface ServiceRulesDeps {
  world: World;
  wanted: ReadonlyMap<string, WantedPod>;
  /** Addresses of the pods of an app that work, by uid. */
  workingPods(pod: WantedPod): ReadonlyMap<string, string>;
  /** Something was wrong within the last hour. */
  isDisturbed(): boolean;
  /** When something was wrong last. */
  lastFaultMs(): number;
  fail(rule: string, message: string): void;
}

/** Rules of the kernel that someone removed are back after this time (docs/networking.md), and that of the programs. */
const BACK_MS = 5_000 + 1_000;
/** No rule leads to a pod that has gone, after this time. */
const FORGOTTEN_MS = 15_000;

/** A probe has failed, and its result is acted on, after this time. */
const UNREADY_MS = PROBE_PERIOD_SECONDS * 1000 + 60_000;

/** Rules about the pods that a client finds behind names, addresses and ports of Services. */
export class ServiceRules {
  readonly #deps: ServiceRulesDeps;
  /** Starts and ends of sandboxes: while there are none, rules stay as they are. */
  #changes = 0;

  constructor(deps: ServiceRulesDeps) {
    this.#deps = deps;
    const { firewall, engine } = deps.world;
    firewall.onForeignChange = (before, after) =>
      deps.fail("foreign", `rules of others were changed from\n${before}\nto\n${after}`);
    engine.observers.add(() => {
      this.#changes++;
    });
  }

  /** Someone is about to remove our rules: they come back while the kubelet runs and knows its pods. */
  expectBack(): void {
    const { world, fail, isDisturbed } = this.#deps;
    if (isDisturbed() || !world.firewall.isInstalled || !world.isRunning || world.firewall.failure !== "") return;
    const before = this.#reached();
    const known = { process: world.processes, changes: this.#changes };
    world.time.after(BACK_MS, () => {
      const isSame = world.isRunning && world.processes === known.process && this.#changes === known.changes;
      if (!isSame || isDisturbed() || world.firewall.failure !== "") return;
      const lost = before.difference(this.#reached());
      if (lost.size > 0) fail("rules come back", `after ${BACK_MS / 1000} s no rule leads to ${[...lost]}`);
      if (before.size > 0 && world.firewall.isBehindDocker) fail("rules come back", "Docker's are still before ours");
    });
  }

  /** The sandbox of a pod has ended. */
  noteEnd(ip: string): void {
    const { world, fail, isDisturbed } = this.#deps;
    const { firewall, time, processes } = world;
    if (!firewall.isInstalled || ip === "") return;
    time.after(FORGOTTEN_MS, () => {
      if (!world.isRunning || world.processes !== processes || isDisturbed() || firewall.failure !== "") return;
      const isUsed = world.ownRunning().some((container) => container.ip === ip);
      if (!isUsed && firewall.ownDestinations().has(ip)) fail("rules", `a rule leads to ${ip}, whose pod has gone`);
    });
  }

  /** A container fails its readiness probe from now on, and nothing else is wrong: soon no Service leads to its pod. */
  noteUnready(container: ModelContainer, app: string): void {
    const { world, fail, lastFaultMs } = this.#deps;
    const { time, engine, firewall, processes } = world;
    if (container.unhealthyUntilMs - time.nowMs < UNREADY_MS) return;
    const [, peer = ""] = container.body.HostConfig?.NetworkMode?.split(":") ?? [];
    const ip = engine.containers.get(peer)?.ip ?? "";
    const faultMs = lastFaultMs();
    time.after(UNREADY_MS, () => {
      const isAlone = lastFaultMs() === faultMs && world.isRunning && world.processes === processes;
      if (!isAlone || firewall.failure !== "" || container.status !== "running") return;
      if (this.#leadsTo(app, ip)) fail("readiness", `Service ${app} leads to ${ip}, whose pod is not Ready`);
    });
  }

  /** Whether clients of a Service reach an address. */
  #leadsTo(app: string, ip: string): boolean {
    const { world } = this.#deps;
    const { disk, firewall } = world;
    if (firewall.isInstalled) return firewall.ownDestinations().has(ip);
    // That of a pod that has ended stays as it is.
    const uids = world.ownRunning().map(({ labels }) => labels["io.kubernetes.pod.uid"]);
    const hosts = [...new Set(uids)].map((uid) => `${ROOT_DIR}/pods/${uid}/etc-hosts`);
    return hosts.some((path) => addressesOf(disk.read(path) ?? "", `${app}.default.svc.cluster.local`).includes(ip));
  }

  /** Long after the last fault. @returns what is wrong */
  findWrong(): string | undefined {
    const { world, wanted, workingPods } = this.#deps;
    const lasting = [...wanted.values()].filter(({ containers }) => containers.every(isLasting));
    const services = lasting.filter(({ replicas }) => replicas !== undefined);
    for (const [uid, ip] of lasting.flatMap((pod) => [...workingPods(pod)])) {
      const hosts = world.disk.read(`${ROOT_DIR}/pods/${uid}/etc-hosts`) ?? "";
      if (!hosts.includes(`\n${ip}\t`)) return `the hosts file of pod ${uid} does not have its address ${ip}`;
      for (const pod of services) {
        const wrong = this.#findWrongService(pod, hosts);
        if (wrong !== undefined) return `in pod ${uid} ${wrong}`;
      }
    }
    return world.firewall.isInstalled ? this.#findWrongRule(services) : undefined;
  }

  /** The name of a Service leads to exactly the pods behind it: by its address, or without iptables by theirs. */
  #findWrongService(pod: WantedPod, hosts: string): string | undefined {
    const { firewall } = this.#deps.world;
    const pods = [...this.#deps.workingPods(pod).values()].sort();
    const found = addressesOf(hosts, `${pod.app}.default.svc.cluster.local`).sort();
    if (!firewall.isInstalled) {
      if (`${found}` === `${pods}`) return undefined;
      return `Service ${pod.app} is ${found.join(" ") || "unknown"} instead of ${pods.join(" ")}`;
    }
    const [address = "", ...more] = found;
    if (address === "" || more.length > 0) return `Service ${pod.app} has the addresses ${found.join(" ") || "none"}`;
    return this.#findWrongTarget(`Service ${pod.app} at ${address}`, { address, port: 80, isLocal: false }, pods);
  }

  #findWrongTarget(
    what: string,
    connection: { address: string; port: number; isLocal: boolean },
    pods: readonly string[],
  ): string | undefined {
    const reached = this.#deps.world.firewall.trace(connection);
    const wanted = pods.map((ip) => `${ip}:80`);
    const found = [...reached.keys()].sort();
    if (`${found}` !== `${wanted}`)
      return `${what} leads to ${found.join(" ") || "nothing"} instead of ${wanted.join(" ")}`;
    const isUneven = [...reached.values()].some((chance) => Math.abs(chance - 1 / pods.length) > 0.001);
    return isUneven ? `${what} does not lead to all pods equally: ${[...reached.values()]}` : undefined;
  }

  #findWrongRule(services: readonly WantedPod[]): string | undefined {
    const { world, workingPods } = this.#deps;
    const { firewall } = world;
    for (const pod of services) {
      const { nodePort: port } = pod;
      if (port === undefined) continue;
      const what = `port ${port} of the machine`;
      if (firewall.isHeldByOther(port)) {
        if (firewall.isPublished(port)) return `${what} is published although another kubelet-ts has it`;
        continue;
      }
      const pods = [...workingPods(pod).values()].sort();
      const wrong = this.#findWrongTarget(what, { address: NODE_IP, port, isLocal: true }, pods);
      if (wrong !== undefined) return wrong;
    }
    if (services.length > 0 && firewall.isBehindDocker) return "Docker's rules are before those of Services";
    const alive = new Set(world.ownRunning().map(({ ip }) => ip));
    const stale = [...firewall.ownDestinations()].find((ip) => !alive.has(ip));
    if (stale !== undefined) return `a rule leads to ${stale}, where no pod is`;
    const unused = firewall.findUnusedChain();
    return unused && `no rule leads to chain ${unused}`;
  }

  /** Pods to which ports of the machine lead. */
  #reached(): Set<string> {
    const { world, wanted } = this.#deps;
    const ports = [...wanted.values()].flatMap(({ nodePort }) => nodePort ?? []);
    const targets = ports.map((port) => world.firewall.trace({ address: NODE_IP, port, isLocal: true }));
    return new Set(targets.flatMap((each) => [...each.keys()]));
  }
}

/** Addresses of a name in a hosts file. */
const addressesOf = (hosts: string, name: string): string[] =>
  hosts
    .split("\n")
    .map((line) => line.split(/\s+/))
    .filter(([, ...names]) => names.includes(name))
    .map(([address = ""]) => address);
