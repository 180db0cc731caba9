import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { computePodHostname, formatHostNetworkHosts, formatManagedHosts } from "../../src/plan/pod-dns.ts";

const LONG = "a".repeat(60);

test.each<{ when: string; name?: string; spec?: Partial<Pod["spec"]>; domain?: string; want: object }>([
  { when: "the name of the pod", want: { hostname: "p-node1", domain: "", kernelHostname: "p-node1" } },
  {
    when: "hostname and subdomain",
    spec: { hostname: "hh", subdomain: "ss" },
    want: { hostname: "hh", domain: "ss.default.svc.cluster.local", kernelHostname: "hh" },
  },
  {
    when: "setHostnameAsFQDN",
    spec: { hostname: "hh", subdomain: "ss", setHostnameAsFQDN: true },
    want: { hostname: "hh", domain: "ss.default.svc.cluster.local", kernelHostname: "hh.ss.default.svc.cluster.local" },
  },
  {
    when: "setHostnameAsFQDN without a subdomain",
    spec: { setHostnameAsFQDN: true },
    want: { hostname: "p-node1", domain: "", kernelHostname: "p-node1" },
  },
  {
    when: "over 63 characters, cut where a dash would end it",
    name: `${LONG}---node1`,
    want: { hostname: LONG, domain: "", kernelHostname: LONG },
  },
  {
    when: "63 characters fit",
    name: `${LONG}-n1`,
    want: { hostname: `${LONG}-n1`, domain: "", kernelHostname: `${LONG}-n1` },
  },
  {
    when: "an FQDN of more than 64 characters",
    spec: { hostname: LONG, subdomain: "s", setHostnameAsFQDN: true },
    want: {
      problem: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${LONG}.s.default.svc.cluster.local is too long (64 characters is the max, 88 characters requested)`,
    },
  },
  {
    when: "nothing is left after the cut",
    name: "-".repeat(64),
    want: { problem: `hostname for pod "${"-".repeat(64)}" was invalid: "${"-".repeat(64)}"` },
  },
  {
    when: "hostnameOverride takes the place of both",
    spec: { hostname: "hh", subdomain: "ss", hostnameOverride: "box.example" },
    want: { hostname: "box.example", domain: "", kernelHostname: "box.example" },
  },
])("$when", ({ name = "p-node1", spec, domain = "cluster.local", want }) => {
  const pod = { metadata: { name, namespace: "default" }, spec: { containers: [], ...spec } } as unknown as Pod;
  expect(computePodHostname(pod, domain)).toEqual(want as ReturnType<typeof computePodHostname>);
});

const HEAD =
  "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
const ALIASES = [
  { ip: "1.2.3.4", hostnames: ["a.example", "a"] },
  { ip: "::9", hostnames: ["nine"] },
];
const ALIAS_LINES = "\n# Entries added by HostAliases.\n1.2.3.4\ta.example\ta\n::9\tnine\n";

test("a pod without subdomain", () => {
  expect(formatManagedHosts(["10.1.2.3"], { hostname: "p-node1", domain: "" })).toBe(`${HEAD}10.1.2.3\tp-node1\n`);
});

test("the recorded file sizes of oracle 02, 14 and 22 fit addresses of 10 characters", () => {
  expect(formatManagedHosts(["172.17.0.2"], { hostname: "envpod-node1", domain: "" })).toHaveLength(207);
  expect(formatManagedHosts(["172.17.0.2"], { hostname: "usergrp-node1", domain: "" })).toHaveLength(208);
});

test("with a domain, for each address, and aliases after an empty line", () => {
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
