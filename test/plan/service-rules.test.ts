import { describe, expect, test } from "bun:test";
import { rangeOfAddress } from "../../src/base/text/ip-range.ts";
import {
  computeServiceRules,
  findPublisher,
  isInKernel,
  jumpsOf,
  missingJumps,
  parseSavedRules,
  type RuledPort,
  type RuledService,
  type RuleFacts,
  type RuleTables,
  toRemovalText,
  toRestoreText,
} from "../../src/plan/service-rules.ts";

const FACTS: RuleFacts = {
  prefix: "KTS-1a2b3c",
  rootDir: "/var/lib/a b",
  range: "10.96.0.0/16",
  unfilteredBridges: [],
  nodePortAddresses: [],
  loopbackBridges: [],
  hasDockerUser: true,
};

const service = (port: Partial<RuledPort> = {}, more: Partial<RuledService> = {}): RuledService => ({
  name: "default/web",
  clusterIp: "10.96.1.2",
  externalIps: [],
  ports: [{ name: "", protocol: "TCP", port: 80, published: [], endpoints: ENDPOINTS, ...port }],
  ...more,
});
const ENDPOINTS = [
  { ip: "172.17.0.2", port: 8000 },
  { ip: "172.17.0.3", port: 8000 },
  { ip: "172.17.0.4", port: 8000 },
];

const chainsIn = (parts: RuleTables["nat"]) => parts.flatMap((part) => [...part]);

/** Rules as lines, with the hashes of chains numbered in their order. */
function linesOf(services: RuledService[], facts: Partial<RuleFacts> = {}, only = /./): string[] {
  const tables = computeServiceRules(services, { ...FACTS, ...facts });
  const numbers = new Map<string, number>();
  const number = (_: string, kind: string, hash: string) => {
    if (!numbers.has(hash)) numbers.set(hash, numbers.size + 1);
    return `${kind}${numbers.get(hash)}`;
  };
  return [...chainsIn(tables.nat), ...chainsIn(tables.filter)]
    .flatMap(([chain, rules]) => rules.map((rule) => `${chain} ${rule}`))
    .map((line) => line.replaceAll("KTS-1a2b3c-", "").replace(/(SVC|SEP)-([0-9a-f]{12})/g, number))
    .filter((line) => only.test(line));
}

test("a Service sends its connections to each of its pods with equal chance", () => {
  expect(linesOf([service()])).toEqual([
    "SEP1 -s 172.17.0.2/32 -j MARK --set-xmark 0x4000/0x4000",
    "SEP1 -p tcp -j DNAT --to-destination 172.17.0.2:8000",
    "SEP2 -s 172.17.0.3/32 -j MARK --set-xmark 0x4000/0x4000",
    "SEP2 -p tcp -j DNAT --to-destination 172.17.0.3:8000",
    "SEP3 -s 172.17.0.4/32 -j MARK --set-xmark 0x4000/0x4000",
    "SEP3 -p tcp -j DNAT --to-destination 172.17.0.4:8000",
    "SVC4 -m statistic --mode random --probability 0.3333333333 -j SEP1",
    "SVC4 -m statistic --mode random --probability 0.5000000000 -j SEP2",
    "SVC4 -j SEP3",
    "SERVICES -d 10.96.0.0/16 -j ADDRESSES",
    'ADDRESSES -d 10.96.1.2/32 -p tcp -m comment --comment "default/web" -m tcp --dport 80 -j SVC4',
    "MASQ -m mark --mark 0x4000/0x4000 -j MASQUERADE",
    "MASQ -s 127.0.0.0/8 ! -o lo -m mark --mark 0x1000/0x1000 -j MASQUERADE",
    "FORWARD -d 10.96.0.0/16 -p tcp -j REJECT --reject-with tcp-reset",
    "FORWARD -d 10.96.0.0/16 -j REJECT",
    "OUTPUT -d 10.96.0.0/16 -p tcp -j REJECT --reject-with tcp-reset",
    "OUTPUT -d 10.96.0.0/16 -j REJECT",
  ]);
});

test("rules of IPv6 have its addresses, and no packets of the loopback leave it", () => {
  const six = service(
    { endpoints: [{ ip: "fd00:1::2", port: 8000 }], published: [{ port: 30080, sources: undefined }] },
    { clusterIp: "fd00:96::7" },
  );
  const facts = { range: "fd00:96::/112", nodePortAddresses: ["127.0.0.0/8", "fd00:2::/64"] };
  expect(linesOf([six], facts, /^(SEP|SERVICES|ADDRESSES|MASQ)/)).toEqual([
    "SEP1 -s fd00:1::2/128 -j MARK --set-xmark 0x4000/0x4000",
    "SEP1 -p tcp -j DNAT --to-destination [fd00:1::2]:8000",
    "SERVICES -d fd00:96::/112 -j ADDRESSES",
    "SERVICES -d fd00:2::/64 -m addrtype --dst-type LOCAL -j PUBLISHED",
    'ADDRESSES -d fd00:96::7/128 -p tcp -m comment --comment "default/web" -m tcp --dport 80 -j SVC2',
    "MASQ -m mark --mark 0x4000/0x4000 -j MASQUERADE",
  ]);
});

test("without endpoints nothing is translated: the connection is refused", () => {
  const lines = linesOf([service({ endpoints: [] }, { externalIps: ["203.0.113.5"] })]);
  expect(lines.filter((line) => /^S(VC|EP)\d/.test(line))).toEqual([]);
  expect(lines.filter((line) => line.includes("no endpoints"))).toEqual(
    ["FORWARD", "OUTPUT"].map(
      (chain) =>
        `${chain} -d 203.0.113.5/32 -p tcp -m comment --comment "default/web has no endpoints" -m tcp --dport 80 -j REJECT --reject-with tcp-reset`,
    ),
  );
});

test("on a bridge whose traffic passes no rules every client of it is masqueraded, others keep their address", () => {
  const endpoints = [ENDPOINTS[0]!, { ip: "172.18.0.2", port: 80 }];
  const unfilteredBridges = [rangeOfAddress("172.17.0.1/16")!];
  expect(linesOf([service({ endpoints })], { unfilteredBridges }, /MARK/)).toEqual([
    "SEP1 -s 172.17.0.0/16 -j MARK --set-xmark 0x4000/0x4000",
    "SEP2 -s 172.18.0.2/32 -j MARK --set-xmark 0x4000/0x4000",
  ]);
});

test("every client of an address that is no pod is masqueraded: another machine answers past this one", () => {
  const endpoints = [{ ip: "192.0.2.1", port: 5432, isOutside: true as const }];
  expect(linesOf([service({ endpoints })], {}, /MARK/)).toEqual(["SEP1 -j MARK --set-xmark 0x4000/0x4000"]);
});

test("an external address is open to clients of other machines, as a published port is", () => {
  expect(linesOf([service({}, { externalIps: ["203.0.113.5"] })], {}, /external|^FORWARD -m/)).toEqual([
    'SERVICES -d 203.0.113.5/32 -p tcp -m comment --comment "default/web external" -m tcp --dport 80 -j MARK --set-xmark 0x1000/0x1000',
    'SERVICES -d 203.0.113.5/32 -p tcp -m comment --comment "default/web external" -m tcp --dport 80 -j SVC4',
    "FORWARD -m mark --mark 0x1000/0x1000 -j DOCKER-USER",
    "FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT",
    "FORWARD -m conntrack ! --ctstate NEW -j DOCKER-USER",
    "FORWARD -m conntrack ! --ctstate NEW -j ACCEPT",
  ]);
});

test("a client keeps its pod with session affinity", () => {
  const lines = linesOf([service({ endpoints: ENDPOINTS.slice(0, 1), protocol: "UDP" }, { affinitySeconds: 600 })]);
  expect(lines.slice(1, 4)).toEqual([
    "SEP1 -p udp -m recent --name SEP1 --set --rsource -j DNAT --to-destination 172.17.0.2:8000",
    "SVC2 -m recent --name SEP1 --rcheck --seconds 600 --reap --rsource -j SEP1",
    "SVC2 -j SEP1",
  ]);
});

describe("published ports", () => {
  const published = [{ port: 30080, sources: undefined }];

  test("of all addresses of the machine, also from itself", () => {
    expect(linesOf([service({ published })], { loopbackBridges: ["docker0"] }, /^(SERV|PUBL|FORW|INPUT)/)).toEqual([
      "SERVICES -d 10.96.0.0/16 -j ADDRESSES",
      "SERVICES -m addrtype --dst-type LOCAL -j PUBLISHED",
      'PUBLISHED -p tcp -m comment --comment "default/web published" -m tcp --dport 30080 -j MARK --set-xmark 0x1000/0x1000',
      'PUBLISHED -p tcp -m comment --comment "default/web published" -m tcp --dport 30080 -j SVC4',
      "FORWARD -d 10.96.0.0/16 -p tcp -j REJECT --reject-with tcp-reset",
      "FORWARD -d 10.96.0.0/16 -j REJECT",
      "FORWARD -m mark --mark 0x1000/0x1000 -j DOCKER-USER",
      "FORWARD -m mark --mark 0x1000/0x1000 -j ACCEPT",
      "FORWARD -m conntrack ! --ctstate NEW -j DOCKER-USER",
      "FORWARD -m conntrack ! --ctstate NEW -j ACCEPT",
      "INPUT -d 127.0.0.0/8 -i docker0 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
    ]);
  });

  test("of some addresses", () => {
    expect(linesOf([service({ published })], { nodePortAddresses: ["192.0.2.0/24", "127.0.0.0/8"] }, /LOCAL/)).toEqual([
      "SERVICES -d 192.0.2.0/24 -m addrtype --dst-type LOCAL -j PUBLISHED",
      "SERVICES -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j PUBLISHED",
    ]);
  });

  test("for some clients, and the machine itself", () => {
    const own = [{ port: 80, sources: ["198.51.100.0/24"] }];
    const froms = linesOf([service({ published: own })], {}, /^PUBLISHED .*SVC/).map((line) => line.split(" -p ")[0]!);
    expect(froms).toEqual(["PUBLISHED -m addrtype --src-type LOCAL", "PUBLISHED -s 198.51.100.0/24"]);
  });
});

describe("a write", () => {
  const noChains = { nat: [], filter: [] };
  const rules = (services: RuledService[]) => computeServiceRules(services, FACTS);
  const change = (before: RuleTables, after: RuleTables) =>
    toRestoreText(after, { chains: before, missingJumps: [], jumps: [] });

  test("of an empty kernel has every chain and jump, one commit for each table", () => {
    const text = toRestoreText(rules([service()]), {
      chains: noChains,
      missingJumps: jumpsOf(FACTS.prefix),
      jumps: [],
    });
    expect(text.match(/COMMIT/g)).toHaveLength(2);
    expect(text.match(/^-I .*$/gm)).toEqual([
      "-I PREROUTING 1 -j KTS-1a2b3c-SERVICES",
      "-I OUTPUT 1 -j KTS-1a2b3c-SERVICES",
      "-I POSTROUTING 1 -j KTS-1a2b3c-MASQ",
      "-I FORWARD 1 -m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD",
      "-I OUTPUT 1 -m conntrack --ctstate NEW -j KTS-1a2b3c-OUTPUT",
      "-I INPUT 1 -j KTS-1a2b3c-INPUT",
    ]);
  });

  test("of what is there is nothing", () => {
    expect(change(rules([service()]), rules([service()]))).toBe("");
  });

  test("of another pod touches the chain of the port, that of the pod and that of the one before", () => {
    const before = rules([service()]);
    const after = rules([service({ endpoints: [...ENDPOINTS.slice(1), { ip: "172.17.0.9", port: 8000 }] })]);
    const text = change(before, after);
    expect(text.match(/^:/gm)).toHaveLength(3);
    expect(text.match(/^-X /gm)).toHaveLength(1);
    expect(text).not.toContain("*filter");
  });

  test.each(["-j", "-g"])(
    "empties a chain of a Service that has gone, and leaves it where a %s of another program leads to it",
    (how) => {
      const chains = rules([service()]);
      const [used, other] = chainsIn(chains.nat).flatMap(([chain]) => (chain.includes("-SEP-") ? [chain] : []));
      const text = `*nat\n:LOCAL - [0:0]\n-A LOCAL -d 203.0.113.1/32 ${how} ${used}\nCOMMIT\n`;
      const { jumps } = parseSavedRules(text, FACTS.prefix);
      const written = toRestoreText(rules([service({ endpoints: [] })]), { chains, missingJumps: [], jumps });
      expect(written).toContain(`:${used} - [0:0]\n`);
      expect(written).toContain(`-X ${other}\n`);
      expect(written).not.toContain(`-X ${used}\n`);
    },
  );

  test("drops the chains of a Service that has gone", () => {
    const text = change(
      rules([service(), service({}, { name: "default/db", clusterIp: "10.96.1.3" })]),
      rules([service()]),
    );
    expect(text.match(/^-X KTS-1a2b3c-S(VC|EP)/gm)).toHaveLength(4);
  });
});

test("the root directory is in a rule, unless iptables-save would write it in another form", () => {
  const only = /0x4000 .*-j MASQUERADE/;
  expect(linesOf([service()], { rootDir: "/var/lib/kubelet-ts" }, only)).toEqual([
    'MASQ -m mark --mark 0x4000/0x4000 -m comment --comment "root directory /var/lib/kubelet-ts" -j MASQUERADE',
  ]);
  expect(linesOf([service()], {}, only)).toEqual(["MASQ -m mark --mark 0x4000/0x4000 -j MASQUERADE"]);
});

describe("what iptables-save shows", () => {
  const SAVED = `*filter
:INPUT ACCEPT [0:0]
:DOCKER-USER - [0:0]
:KTS-1a2b3c-FORWARD - [0:0]
:KTS-1a2b3c-INPUT - [0:0]
:KTS-ffffff-FORWARD - [0:0]
-A FORWARD -m conntrack --ctstate NEW -j KTS-ffffff-FORWARD
-A FORWARD -m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD
-A KTS-1a2b3c-INPUT -d 127.0.0.0/8 -i docker0 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
*nat
:KTS-1a2b3c-SERVICES - [0:0]
-A OUTPUT -j KTS-1a2b3c-SERVICES
-A KTS-1a2b3c-SERVICES -d 10.96.0.0/16 -j KTS-1a2b3c-ADDRESSES
-A KTS-ffffff-SERVICES -d 10.97.0.0/16 -j KTS-ffffff-ADDRESSES
-A KTS-ffffff-MASQ -m mark --mark 0x4000/0x4000 -m comment --comment "root directory /srv/two" -j MASQUERADE
COMMIT
`;
  const saved = parseSavedRules(SAVED, FACTS.prefix);

  test("is read: our chains, and the ranges of others", () => {
    expect(saved.own).toEqual({
      nat: new Map([["KTS-1a2b3c-SERVICES", 1]]),
      filter: new Map([
        ["KTS-1a2b3c-FORWARD", 0],
        ["KTS-1a2b3c-INPUT", 1],
      ]),
    });
    expect([saved.hasDockerUser, saved.loopbackBridges]).toEqual([true, ["docker0"]]);
    expect(saved.otherRanges).toEqual(new Map([["KTS-ffffff", "10.97.0.0/16"]]));
    expect(saved.rootDirs).toEqual(new Map([["KTS-ffffff", "/srv/two"]]));
    expect(missingJumps(FACTS.prefix, saved).map(({ table, chain }) => `${table} ${chain}`)).toEqual([
      "nat PREROUTING",
      "nat POSTROUTING",
      "filter OUTPUT",
      "filter INPUT",
    ]);
  });

  test("is removed, and nothing of others", () => {
    expect(toRemovalText(saved).split("\n")).toEqual([
      "*nat",
      ":KTS-1a2b3c-SERVICES - [0:0]",
      "-D OUTPUT -j KTS-1a2b3c-SERVICES",
      "-X KTS-1a2b3c-SERVICES",
      "COMMIT",
      "*filter",
      ":KTS-1a2b3c-FORWARD - [0:0]",
      ":KTS-1a2b3c-INPUT - [0:0]",
      "-D FORWARD -m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD",
      "-X KTS-1a2b3c-FORWARD",
      "-X KTS-1a2b3c-INPUT",
      "COMMIT",
      "",
    ]);
    expect(toRemovalText(parseSavedRules(SAVED, "KTS-000000"))).toBe("");
  });

  /** Rules as the kernel shows them, without those that `isGone` names. */
  const savedOf = (tables: RuleTables, isGone: (line: string) => boolean = () => false, before: string[] = []) => {
    const lines = (["nat", "filter"] as const).flatMap((table) => [
      `*${table}`,
      ...chainsIn(tables[table]).map(([chain]) => `:${chain} - [0:0]`),
      ...(table === "filter" ? before : []),
      ...jumpsOf(FACTS.prefix).flatMap((jump) => (jump.table === table ? `-A ${jump.chain} ${jump.rule}` : [])),
      ...chainsIn(tables[table]).flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
    ]);
    return parseSavedRules(lines.filter((line) => !isGone(line)).join("\n"), FACTS.prefix);
  };
  const tables = computeServiceRules([service()], FACTS);

  test.each<[string, RegExp, boolean]>([
    ["all", /^$/, true],
    ["a jump", /^-A POSTROUTING /, false],
    ["the chain of an endpoint", /^[-:].*-SEP-\w+ -p/, false],
    ["the rules of a port", /^-A KTS-1a2b3c-SVC-/, false],
    ["a refusal", /^-A KTS-1a2b3c-OUTPUT /, false],
  ])("is what is wanted: %s", (_, isGone, isThere) => {
    expect(
      isInKernel(
        FACTS.prefix,
        tables,
        savedOf(tables, (line) => isGone.test(line)),
      ),
    ).toBe(isThere);
  });

  test.each([
    ["-A FORWARD -i br-1 ! -o br-1 -j ACCEPT", 1],
    ["-A FORWARD -j DOCKER-FORWARD", 1],
    ["-A FORWARD -j DOCKER-USER", 0],
    ["-A FORWARD -s 203.0.113.0/24 -j DROP", 0],
    ["-A FORWARD -m conntrack --ctstate NEW -j KTS-ffffff-FORWARD", 0],
  ])("a jump behind %s moves before it: %d", (rule, count) => {
    const late = missingJumps(
      FACTS.prefix,
      savedOf(tables, () => false, [rule]),
    );
    expect(late).toHaveLength(count);
    const text = toRestoreText(tables, { chains: tables, missingJumps: late, jumps: [] });
    const jump = "-m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD";
    expect(text).toBe(count ? `*filter\n-D FORWARD ${jump}\n-I FORWARD 1 ${jump}\nCOMMIT\n` : "");
  });

  test("names the other kubelet-ts that has a port; of two that took it at once the first by name has it", () => {
    const published = (prefix: string) =>
      `-A ${prefix}-PUBLISHED -p tcp -m comment --comment "a/b published" -m tcp --dport 80 -j MARK --set-xmark 0x1000/0x1000`;
    const holder = (...prefixes: string[]) =>
      findPublisher(
        FACTS.prefix,
        parseSavedRules(["*nat", ...prefixes.map(published)].join("\n"), FACTS.prefix),
        "TCP",
        80,
      );
    expect(holder()).toBeUndefined();
    expect(holder("KTS-1a2b3c")).toBeUndefined();
    expect(holder("KTS-ffffff")).toBe("KTS-ffffff");
    expect(holder("KTS-1a2b3c", "KTS-ffffff")).toBeUndefined();
    expect(holder("KTS-000000", "KTS-1a2b3c")).toBe("KTS-000000");
  });
});
