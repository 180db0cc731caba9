import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import {
  computeDnsConfig,
  computePodHostname,
  type DnsConfig,
  type DnsFacts,
  formatHostNetworkHosts,
  formatManagedHosts,
  formatResolvConf,
  parseResolvConf,
} from "../../src/plan/pod-dns.ts";
import { aPod } from "../support/builders.ts";

/** The file of oracle 29. */
const HOST = "nameserver 8.8.4.4\nnameserver 10.0.0.53\nsearch corp.example lab.example\noptions ndots:1 timeout:3\n";
const nodeIp = "192.0.2.1";
const CLUSTER: DnsFacts = { clusterDns: ["10.96.0.10"], clusterDomain: "cluster.local", hostResolvConf: HOST, nodeIp };
const OWN = "nameserver 192.0.2.53\n";
const NO_CLUSTER: DnsFacts = { clusterDns: [], clusterDomain: "", hostResolvConf: OWN, nodeIp };

type Spec = Partial<Pod["spec"]>;
const podOf = (spec: Spec, namespace = "default") => aPod(spec, { name: "p-node1", uid: "u1", namespace });

function resolvConf(spec: Spec, facts: DnsFacts, namespace?: string) {
  const { dns, warnings } = computeDnsConfig(podOf(spec, namespace), facts);
  return { text: formatResolvConf(dns), warnings: warnings.map(({ reason }) => reason) };
}

const CLUSTER_FIRST =
  "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example\noptions ndots:5\n";

const withHostNet: Spec = { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" };
const merged: Spec["dnsConfig"] = {
  nameservers: ["9.9.9.9"],
  searches: ["extra.example", "svc.cluster.local"],
  options: [{ name: "ndots", value: "2" }, { name: "single-request" }],
};
test.each<[when: string, Spec, want: string, namespace?: string]>([
  ["ClusterFirst", {}, CLUSTER_FIRST],
  ["ClusterFirst in another namespace", {}, CLUSTER_FIRST.replace("default.svc", "shop.svc"), "shop"],
  ["Default", { dnsPolicy: "Default" }, HOST],
  ["ClusterFirst with host networking is Default", { hostNetwork: true }, HOST],
  ["ClusterFirstWithHostNet", withHostNet, CLUSTER_FIRST],
  ["None", { dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1"] } }, "nameserver 1.1.1.1\n"],
  [
    "dnsConfig is merged: no duplicates, options of the same name replaced",
    { dnsConfig: merged },
    "nameserver 10.96.0.10\nnameserver 9.9.9.9\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example extra.example\noptions ndots:2 single-request\n",
  ],
])("as recorded with cluster flags: %s", (_when, spec, want, ...[namespace]) => {
  expect(resolvConf(spec, CLUSTER, namespace)).toEqual({ text: want, warnings: [] });
});

describe("with a DNS server of this node", () => {
  const facts: DnsFacts = { ...NO_CLUSTER, ownDns: "10.96.0.9", hostResolvConf: HOST };
  const head = "nameserver 10.96.0.9\nnameserver 8.8.4.4\nnameserver 10.0.0.53\n";
  const tail = "svc.cluster.local cluster.local corp.example lab.example\noptions ndots:5\n";
  test.each<[when: string, Spec, want: string, facts?: Partial<DnsFacts>]>([
    ["the node's own servers follow it", {}, `${head}search default.svc.cluster.local ${tail}`],
    ["also with host networking", withHostNet, `${head}search default.svc.cluster.local ${tail}`],
    ["Default is without it", { dnsPolicy: "Default" }, HOST],
    ["--cluster-dns goes before it", {}, CLUSTER_FIRST, CLUSTER],
    [
      "three servers of the node are one too many, without a warning",
      {},
      "nameserver 10.96.0.9\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nsearch default.svc.edge.test svc.edge.test edge.test\noptions ndots:5\n",
      { hostResolvConf: "nameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\n", clusterDomain: "edge.test" },
    ],
  ])("%s", (_when, spec, want, more = {}) => {
    expect(resolvConf(spec, { ...facts, ...more })).toEqual({ text: want, warnings: [] });
  });
});

describe("as recorded without cluster flags", () => {
  const dnsConfig: Spec["dnsConfig"] = {
    nameservers: ["1.2.3.4", "5.6.7.8"],
    searches: ["a.example", "b.example"],
    options: [{ name: "ndots", value: "3" }, { name: "edns0" }],
  };
  const said = "nameserver 1.2.3.4\nnameserver 5.6.7.8\nsearch a.example b.example\noptions ndots:3 edns0\n";
  test.each<[when: string, Spec, want: string, warnings?: string[]]>([
    ["ClusterFirst, the default", {}, OWN],
    [
      "ClusterFirstWithHostNet",
      { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" },
      OWN,
      ["MissingClusterDNS"],
    ],
    ["ClusterFirst with host networking", { hostNetwork: true }, OWN],
    ["Default", { dnsPolicy: "Default" }, OWN],
    ["Default and dnsConfig", { dnsPolicy: "Default", dnsConfig }, OWN + said],
    ["None", { dnsPolicy: "None", dnsConfig }, said],
  ])("%s", (_when, spec, want, warnings = []) => {
    expect(resolvConf(spec, NO_CLUSTER)).toEqual({ text: want, warnings });
  });

  test("the event's text", () => {
    expect(computeDnsConfig(podOf({ dnsPolicy: "ClusterFirstWithHostNet" }), NO_CLUSTER).warnings).toEqual([
      {
        type: "Warning",
        reason: "MissingClusterDNS",
        message:
          'pod: "p-node1_default(u1)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.',
      },
    ]);
  });
});

test("an empty --resolv-conf means that only the pod itself is asked", () => {
  const facts = { ...NO_CLUSTER, hostResolvConf: undefined };
  expect(resolvConf({ dnsPolicy: "Default" }, facts).text).toBe("nameserver 127.0.0.1\nsearch .\n");
  expect(resolvConf({ dnsPolicy: "Default" }, { ...facts, nodeIp: "fd00::1" }).text).toBe("nameserver ::1\nsearch .\n");
  expect(resolvConf({}, { ...CLUSTER, hostResolvConf: undefined }).text).toBe(
    "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
  );
});

test("cluster DNS without a cluster domain keeps the host's searches", () => {
  expect(resolvConf({}, { ...CLUSTER, clusterDomain: "" }).text).toBe(
    "nameserver 10.96.0.10\nsearch corp.example lab.example\noptions ndots:5\n",
  );
});

test("the resolver's limits", () => {
  const searches = Array.from({ length: 40 }, (_, index) => `s${index}.example`);
  const spec = { dnsPolicy: "None" as const, dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3"], searches } };
  const many = resolvConf(spec, NO_CLUSTER);
  expect(many.text.split("\n")[3]?.split(" ")).toHaveLength(33);
  expect(many.warnings).toEqual(["DNSConfigForming"]);
  const fourth = computeDnsConfig(podOf({ dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3"] } }), CLUSTER);
  expect(fourth.dns.nameservers).toEqual(["10.96.0.10", "1.1.1.1", "2.2.2.2"]);
  expect(fourth.warnings[0]?.message).toBe(
    "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.96.0.10 1.1.1.1 2.2.2.2",
  );
  const long = ["a", "b", "c"].map((letter) => letter.repeat(1000));
  expect(resolvConf({ dnsPolicy: "None", dnsConfig: { searches: long } }, NO_CLUSTER).text).toBe(
    `search ${long[0]} ${long[1]}\n`,
  );
});

test.each<{ text: string; want: DnsConfig }>([
  { text: "", want: { nameservers: [], searches: [], options: [] } },
  { text: "# nameserver 1.1.1.1\n;x\n\n", want: { nameservers: [], searches: [], options: [] } },
  { text: "nameserver\nnameserver  1.1.1.1 # x", want: { nameservers: ["1.1.1.1"], searches: [], options: [] } },
  { text: "search a\nsearch b. .\n", want: { nameservers: [], searches: ["b", "."], options: [] } },
  { text: "options a:1 b\noptions a:2", want: { nameservers: [], searches: [], options: ["a:2", "b"] } },
])("parse %#", ({ text, want }) => expect(parseResolvConf(text)).toEqual(want));

test("an empty configuration is an empty text", () => {
  expect(formatResolvConf({ nameservers: [], searches: [], options: [] })).toBe("");
});

const LONG = "a".repeat(60);

const DOMAIN = "ss.default.svc.cluster.local";
const both = { hostname: "hh", subdomain: "ss" };
const DASHES = "-".repeat(64);
const tooLong = `FQDN ${LONG}.s.default.svc.cluster.local is too long (64 characters is the max, 88 characters requested)`;

test.each<[when: string, name: string, Partial<Pod["spec"]>, hostname: string, domain: string, kernelHostname: string]>(
  [
    ["the name of the pod", "p-node1", {}, "p-node1", "", "p-node1"],
    ["hostname and subdomain", "p-node1", both, "hh", DOMAIN, "hh"],
    ["setHostnameAsFQDN", "p-node1", { ...both, setHostnameAsFQDN: true }, "hh", DOMAIN, `hh.${DOMAIN}`],
    ["setHostnameAsFQDN without a subdomain", "p-node1", { setHostnameAsFQDN: true }, "p-node1", "", "p-node1"],
    ["over 63 characters, cut where a dash would end it", `${LONG}---node1`, {}, LONG, "", LONG],
    ["63 characters fit", `${LONG}-n1`, {}, `${LONG}-n1`, "", `${LONG}-n1`],
    ["hostnameOverride takes the place of both", "p", { ...both, hostnameOverride: "box.a" }, "box.a", "", "box.a"],
  ],
)("%s", (_when, name, spec, hostname, domain, kernelHostname) => {
  expect(hostnameOf(name, spec)).toEqual({ hostname, domain, kernelHostname });
});

test.each<[when: string, name: string, Partial<Pod["spec"]>, problem: string]>([
  [
    "an FQDN of more than 64 characters",
    "p-node1",
    { hostname: LONG, subdomain: "s", setHostnameAsFQDN: true },
    `failed to construct FQDN from pod hostname and cluster domain, ${tooLong}`,
  ],
  ["nothing is left after the cut", DASHES, {}, `hostname for pod "${DASHES}" was invalid: "${DASHES}"`],
])("%s is refused", (_when, name, spec, problem) => expect(hostnameOf(name, spec)).toEqual({ problem }));

test("without --cluster-domain the full name is of the domain that Services have", () => {
  const pod = { metadata: { name: "db-0", namespace: "shop" }, spec: { containers: [], subdomain: "db" } };
  expect(computePodHostname(pod as unknown as Pod, "")).toMatchObject({ domain: "db.shop.svc.cluster.local" });
});

function hostnameOf(name: string, spec: Partial<Pod["spec"]>) {
  const pod = { metadata: { name, namespace: "default" }, spec: { containers: [], ...spec } } as unknown as Pod;
  return computePodHostname(pod, "cluster.local");
}

const HEAD =
  "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
const ALIASES = [
  { ip: "1.2.3.4", hostnames: ["a.example", "a"] },
  { ip: "::9", hostnames: ["nine"] },
];
const ALIAS_LINES = "\n# Entries added by HostAliases.\n1.2.3.4\ta.example\ta\n::9\tnine\n";

test("the hosts file of a pod without subdomain", () => {
  expect(formatManagedHosts(["10.1.2.3"], { hostname: "p-node1", domain: "" })).toBe(`${HEAD}10.1.2.3\tp-node1\n`);
});

test("the recorded file sizes of oracle 02, 14 and 22 fit addresses of 10 characters", () => {
  expect(formatManagedHosts(["172.17.0.2"], { hostname: "envpod-node1", domain: "" })).toHaveLength(207);
  expect(formatManagedHosts(["172.17.0.2"], { hostname: "usergrp-node1", domain: "" })).toHaveLength(208);
});

test("the hosts file with a domain, for each address, and aliases after an empty line", () => {
  const names = { hostname: "hh", domain: "ss.default.svc.cluster.local" };
  expect(formatManagedHosts(["10.1.2.3", "fd00::3"], names, ALIASES)).toBe(
    `${HEAD}10.1.2.3\thh.ss.default.svc.cluster.local\thh\nfd00::3\thh.ss.default.svc.cluster.local\thh\n${ALIAS_LINES}`,
  );
});

test("with host networking the node's file is copied as it is", () => {
  expect(formatHostNetworkHosts("127.0.0.1 localhost\n")).toBe(
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n",
  );
  expect(formatHostNetworkHosts("127.0.0.1 localhost\n", ALIASES)).toBe(
    `# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n${ALIAS_LINES}`,
  );
});
