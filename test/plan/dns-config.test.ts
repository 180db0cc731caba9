import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import {
  computeDnsConfig,
  type DnsConfig,
  type DnsFacts,
  formatResolvConf,
  parseResolvConf,
} from "../../src/plan/dns-config.ts";

/** The file of oracle 29. */
const HOST = "nameserver 8.8.4.4\nnameserver 10.0.0.53\nsearch corp.example lab.example\noptions ndots:1 timeout:3\n";
const CLUSTER: DnsFacts = {
  clusterDns: ["10.96.0.10"],
  clusterDomain: "cluster.local",
  hostResolvConf: HOST,
  nodeIp: "192.0.2.1",
};
const NO_CLUSTER: DnsFacts = {
  clusterDns: [],
  clusterDomain: "",
  hostResolvConf: "nameserver 192.0.2.53\n",
  nodeIp: "192.0.2.1",
};

function aPod(spec: Partial<Pod["spec"]>, namespace = "default"): Pod {
  return {
    metadata: { name: "p-node1", namespace, uid: "u1" },
    spec: {
      containers: [],
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      securityContext: {},
      schedulerName: "default-scheduler",
      enableServiceLinks: true,
      ...spec,
    },
  };
}

function resolvConf(spec: Partial<Pod["spec"]>, facts: DnsFacts, namespace?: string) {
  const { dns, warnings } = computeDnsConfig(aPod(spec, namespace), facts);
  return { text: formatResolvConf(dns), warnings: warnings.map(({ reason }) => reason) };
}

const CLUSTER_FIRST =
  "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example\noptions ndots:5\n";

describe("as recorded with cluster flags", () => {
  test.each<{ when: string; spec: Partial<Pod["spec"]>; namespace?: string; want: string }>([
    { when: "ClusterFirst", spec: {}, want: CLUSTER_FIRST },
    {
      when: "ClusterFirst in another namespace",
      spec: {},
      namespace: "shop",
      want: CLUSTER_FIRST.replace("default.svc", "shop.svc"),
    },
    { when: "Default", spec: { dnsPolicy: "Default" }, want: HOST },
    { when: "ClusterFirst with host networking is Default", spec: { hostNetwork: true }, want: HOST },
    {
      when: "ClusterFirstWithHostNet",
      spec: { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" },
      want: CLUSTER_FIRST,
    },
    {
      when: "None",
      spec: { dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1"] } },
      want: "nameserver 1.1.1.1\n",
    },
    {
      when: "dnsConfig is merged: no duplicates, options of the same name replaced",
      spec: {
        dnsConfig: {
          nameservers: ["9.9.9.9"],
          searches: ["extra.example", "svc.cluster.local"],
          options: [{ name: "ndots", value: "2" }, { name: "single-request" }],
        },
      },
      want: "nameserver 10.96.0.10\nnameserver 9.9.9.9\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example extra.example\noptions ndots:2 single-request\n",
    },
  ])("$when", ({ spec, namespace, want }) => {
    expect(resolvConf(spec, CLUSTER, namespace)).toEqual({ text: want, warnings: [] });
  });
});

describe("as recorded without cluster flags", () => {
  test.each<{ when: string; spec: Partial<Pod["spec"]>; want: string; warnings?: string[] }>([
    { when: "ClusterFirst, the default", spec: {}, want: "nameserver 192.0.2.53\n" },
    {
      when: "ClusterFirstWithHostNet",
      spec: { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" },
      want: "nameserver 192.0.2.53\n",
      warnings: ["MissingClusterDNS"],
    },
    { when: "ClusterFirst with host networking", spec: { hostNetwork: true }, want: "nameserver 192.0.2.53\n" },
    { when: "Default", spec: { dnsPolicy: "Default" }, want: "nameserver 192.0.2.53\n" },
    {
      when: "Default and dnsConfig",
      spec: {
        dnsPolicy: "Default",
        dnsConfig: {
          nameservers: ["9.9.9.9"],
          searches: ["extra.example"],
          options: [{ name: "timeout", value: "2" }],
        },
      },
      want: "nameserver 192.0.2.53\nnameserver 9.9.9.9\nsearch extra.example\noptions timeout:2\n",
    },
    {
      when: "None",
      spec: {
        dnsPolicy: "None",
        dnsConfig: {
          nameservers: ["1.2.3.4", "5.6.7.8"],
          searches: ["a.example", "b.example"],
          options: [{ name: "ndots", value: "3" }, { name: "edns0" }],
        },
      },
      want: "nameserver 1.2.3.4\nnameserver 5.6.7.8\nsearch a.example b.example\noptions ndots:3 edns0\n",
    },
  ])("$when", ({ spec, want, warnings = [] }) => {
    expect(resolvConf(spec, NO_CLUSTER)).toEqual({ text: want, warnings });
  });

  test("the event's text", () => {
    expect(computeDnsConfig(aPod({ dnsPolicy: "ClusterFirstWithHostNet" }), NO_CLUSTER).warnings).toEqual([
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
  const fourth = computeDnsConfig(aPod({ dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3"] } }), CLUSTER);
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

test("nothing to say is an empty text", () => {
  expect(formatResolvConf({ nameservers: [], searches: [], options: [] })).toBe("");
});
