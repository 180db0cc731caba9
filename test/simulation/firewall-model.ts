import { isInRange, rangeOfAddress } from "../../src/base/text/ip-range.ts";

/** Outcome of a program. */
interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

type Chains = Map<string, string[]>;
type TableName = "nat" | "filter";

/** Chains of the kernel itself. */
const BUILT_IN = {
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
} as const;

/** Docker's own rules, as far as others look at them. */
const DOCKER: Readonly<Record<TableName, readonly string[]>> = {
  nat: [
    ":DOCKER",
    "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER",
    "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
  ],
  filter: [":DOCKER", ":DOCKER-USER", "-A FORWARD -j DOCKER-USER", "-A FORWARD -o docker0 -j DOCKER"],
};

/** Chains of a kubelet-ts: `KTS-1a2b3c-SERVICES`. */
const ANY_OWNER = /^KTS-\w{6}-/;
/** Another kubelet-ts on the machine: of two that take a port at once it is the first. */
export const OTHER_PREFIX = "KTS-000000";

/** A connection, as it arrives at the machine. */
interface Connection {
  address: string;
  port: number;
  /** The address is one of the machine. */
  isLocal: boolean;
}

/** iptables of the machine, as its programs show it. Rules have the text that they were given. */
export class FirewallModel {
  isInstalled = false;
  /** iptables stands on nftables: the kernel counts the changes. */
  hasGenerations = false;
  #generation = 1;
  /** Programs end with this; "": they work. */
  failure = "";
  /** The output of iptables-save for each table, as long as nothing changes. */
  #saved = { generation: 0, texts: new Map<TableName, string>() };
  #tables: Record<TableName, Chains> = { nat: new Map(), filter: new Map() };
  /** Rules of others before a change, and after it: where they differ, who made it has changed what is not his. */
  onForeignChange: (before: string, after: string) => void = () => {};

  constructor() {
    this.boot();
  }

  /** The kernel's count of changes to rules. */
  get generation(): number | undefined {
    return this.hasGenerations ? this.#generation : undefined;
  }

  /** The kernel starts, then Docker. */
  boot(): void {
    this.#generation++;
    for (const name of ["nat", "filter"] as const) {
      this.#tables[name] = new Map(BUILT_IN[name].map((chain) => [chain, []]));
      this.#addDockerRules(name);
    }
  }

  /** A firewall is reloaded: no rule of others stays. Docker's come back with it. */
  reload(): void {
    this.boot();
  }

  /** Docker starts again, and puts its rules before those of others. */
  restartDocker(): void {
    this.#generation++;
    const rules = this.#tables.filter.get("FORWARD") ?? [];
    const own = rules.filter((rule) => isDockers(rule));
    this.#tables.filter.set("FORWARD", [...own, ...rules.filter((rule) => !isDockers(rule))]);
  }

  /** Whether Docker would drop what comes to published ports before our rules let it pass. */
  get isBehindDocker(): boolean {
    const rules = this.#tables.filter.get("FORWARD") ?? [];
    return rules.findIndex((rule) => rule.endsWith("-j DOCKER")) < rules.findIndex((rule) => isOwn(targetOf(rule)));
  }

  /** Someone removes one rule of the kernel's own chains that leads to a chain of kubelet-ts. @param pick chooses it */
  removeJump(pick: (count: number) => number): void {
    const jumps = Object.values(this.#tables).flatMap((chains) =>
      [...chains].flatMap(([chain, rules]) =>
        ANY_OWNER.test(chain) ? [] : rules.filter((rule) => isOwn(targetOf(rule))).map((rule) => ({ rules, rule })),
      ),
    );
    if (jumps.length === 0) return;
    this.#generation++;
    const { rules, rule } = jumps[pick(jumps.length)]!;
    rules.splice(rules.indexOf(rule), 1);
  }

  /** Another kubelet-ts publishes a port of the machine. @returns what ends it */
  publishForOther(port: number): () => void {
    const chain = `${OTHER_PREFIX}-PUBLISHED`;
    const rule = `-p tcp -m comment --comment "default/theirs published" -m tcp --dport ${port} -j MARK --set-xmark 0x1000/0x1000`;
    const nat = this.#tables.nat;
    this.#generation++;
    nat.set(chain, [...(nat.get(chain) ?? []), rule]);
    return () => {
      this.#generation++;
      const rules = this.#tables.nat.get(chain)?.filter((it) => it !== rule) ?? [];
      if (rules.length > 0) this.#tables.nat.set(chain, rules);
      else this.#tables.nat.delete(chain);
    };
  }

  /** Whether another kubelet-ts publishes a port. */
  isHeldByOther(port: number): boolean {
    return (this.#tables.nat.get(`${OTHER_PREFIX}-PUBLISHED`) ?? []).some((rule) => rule.includes(`--dport ${port} `));
  }

  /** Runs `iptables-save` or `iptables-restore --noflush`. */
  run(argv: readonly string[], input: string): Outcome {
    const failed = (stderr: string, exitCode = 4) => ({ exitCode, stdout: "", stderr });
    const program = argv[0]?.slice(argv[0].lastIndexOf("/") + 1);
    if (argv.includes("--version")) {
      return { exitCode: 0, stdout: `iptables v1.8.7 (${this.hasGenerations ? "nf_tables" : "legacy"})\n`, stderr: "" };
    }
    if (this.failure !== "") return failed(`${this.failure}\n`);
    if (program === "iptables-save") {
      return { exitCode: 0, stdout: this.#save(argv[argv.indexOf("-t") + 1] as TableName), stderr: "" };
    }
    const before = this.#foreignRules();
    const problem = this.#restore(input);
    const after = this.#foreignRules();
    if (before !== after) this.onForeignChange(before, after);
    return problem === undefined ? { exitCode: 0, stdout: "", stderr: "" } : failed(`${program}: ${problem}\n`, 2);
  }

  /** Where a new connection goes, with the chance of each. Empty: nowhere but to the address itself. */
  trace(connection: Connection): Map<string, number> {
    const found = new Map<string, number>();
    const { nat } = this.#tables;
    /** @returns the chance that the packet comes out of the chain */
    const walk = (chain: string, chance: number, depth: number): number => {
      let left = chance;
      for (const rule of nat.get(chain) ?? []) {
        if (left === 0 || depth > 10) break;
        if (!isMatching(rule, connection)) continue;
        const share = Number(/--probability (\S+)/.exec(rule)?.[1] ?? 1) * left;
        const target = targetOf(rule);
        const to = /--to-destination (\S+)/.exec(rule)?.[1];
        if (to !== undefined) found.set(to, (found.get(to) ?? 0) + share);
        if (to !== undefined) left -= share;
        else if (nat.has(target)) left += walk(target, share, depth + 1) - share;
      }
      return left;
    };
    walk("PREROUTING", 1, 0);
    return found;
  }

  /** Whether our rules send what a port of the machine gets to pods. */
  isPublished(port: number): boolean {
    return [...this.#tables.nat].some(
      ([chain, rules]) =>
        isOwn(chain) && chain.endsWith("-PUBLISHED") && rules.some((rule) => rule.includes(`--dport ${port} `)),
    );
  }

  /** Addresses to which our rules lead, whether a packet gets to them or not. */
  ownDestinations(): Set<string> {
    const rules = [...this.#tables.nat].flatMap(([chain, rules]) => (isOwn(chain) ? rules : []));
    return new Set(rules.flatMap((rule) => /--to-destination (\S+):/.exec(rule)?.[1] ?? []));
  }

  /** A chain of a Service or of one of its pods to which no rule leads. */
  findUnusedChain(): string | undefined {
    for (const chains of Object.values(this.#tables)) {
      const used = new Set([...chains.values()].flat().map(targetOf));
      const unused = [...chains.keys()].find((chain) => isOwn(chain) && /-(SVC|SEP)-/.test(chain) && !used.has(chain));
      if (unused !== undefined) return unused;
    }
    return undefined;
  }

  #addDockerRules(name: TableName): void {
    const chains = this.#tables[name];
    for (const line of DOCKER[name]) {
      const [, chain = "", rule = ""] = /^(?::|-A )(\S+) ?(.*)$/.exec(line) ?? [];
      if (!chains.has(chain)) chains.set(chain, []);
      if (rule !== "") chains.get(chain)?.push(rule);
    }
  }

  #save(name: TableName): string {
    if (this.#saved.generation !== this.#generation) this.#saved = { generation: this.#generation, texts: new Map() };
    const text = this.#saved.texts.get(name) ?? this.#saveTable(name);
    this.#saved.texts.set(name, text);
    return text;
  }

  #saveTable(name: TableName): string {
    const chains = this.#tables[name];
    const builtIn: readonly string[] = BUILT_IN[name];
    const heads = [...chains.keys()].map((chain) => `:${chain} ${builtIn.includes(chain) ? "ACCEPT" : "-"} [0:0]`);
    const rules = [...chains].flatMap(([chain, all]) => all.map((rule) => `-A ${chain} ${rule}`));
    return [`*${name}`, ...heads, ...rules, "COMMIT", ""].join("\n");
  }

  /** Each table in one step. @returns what is wrong */
  #restore(text: string): string | undefined {
    let name: TableName | undefined;
    let chains: Chains = new Map();
    for (const [index, line] of text.split("\n").entries()) {
      const fail = (what: string) => `line ${index + 1} failed: ${what}: ${line}`;
      if (line.startsWith("*")) {
        name = line.slice(1) as TableName;
        chains = new Map([...this.#tables[name]].map(([chain, rules]) => [chain, [...rules]]));
      } else if (line === "COMMIT" && name) {
        for (const rule of [...chains.values()].flat())
          if (isOwn(targetOf(rule)) && !chains.has(targetOf(rule))) return fail(`no chain ${targetOf(rule)}`);
        this.#tables[name] = chains;
        this.#generation++;
      } else if (line.startsWith(":")) chains.set(line.slice(1).split(" ")[0]!, []);
      else if (line !== "") {
        const problem = applyLine(chains, line);
        if (problem !== undefined) return fail(problem);
      }
    }
    return undefined;
  }

  /** Chains and rules of others, in their order. */
  #foreignRules(): string {
    return Object.values(this.#tables)
      .flatMap((chains) => [...chains])
      .filter(([chain]) => !isOwn(chain))
      .map(([chain, rules]) => [chain, ...rules.filter((rule) => !isOwn(targetOf(rule)))].join("\n"))
      .join("\n");
  }
}

const isOwn = (chain: string) => ANY_OWNER.test(chain) && !chain.startsWith(OTHER_PREFIX);

const isDockers = (rule: string) => targetOf(rule).startsWith("DOCKER");

const targetOf = (rule: string): string => /(?:^| )-j (\S+)/.exec(rule)?.[1] ?? "";

/** One line of iptables-restore. @returns what is wrong */
function applyLine(chains: Chains, line: string): string | undefined {
  const [, command = "", chain = "", rest = ""] = /^(-[AIDX]) (\S+) ?(.*)$/.exec(line) ?? [];
  const rules = chains.get(chain);
  if (!rules) return "no such chain";
  if (command === "-A") rules.push(rest);
  else if (command === "-I") rules.unshift(rest.replace(/^1 /, ""));
  else if (command === "-D") {
    const at = rules.indexOf(rest);
    if (at < 0) return "no such rule";
    rules.splice(at, 1);
  } else if (command === "-X") {
    if (rules.length > 0 || [...chains.values()].flat().some((rule) => targetOf(rule) === chain)) return "in use";
    chains.delete(chain);
  } else return "unknown command";
  return undefined;
}

/** As a client of another pod is seen, over TCP. */
function isMatching(rule: string, { address, port, isLocal }: Connection): boolean {
  const range = /(?:^| )-d (\S+)/.exec(rule)?.[1];
  const parsed = range === undefined ? undefined : rangeOfAddress(range);
  if (parsed && !isInRange(address, parsed)) return false;
  const destination = /--dport (\d+)/.exec(rule)?.[1];
  if (destination !== undefined && Number(destination) !== port) return false;
  if (/(?:^| )-p (?!tcp )/.test(rule) || /(?:^| )-s |--mark |-i /.test(rule)) return false;
  return !rule.includes("--dst-type LOCAL") || isLocal;
}
