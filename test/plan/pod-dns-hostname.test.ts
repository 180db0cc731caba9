import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { computePodHostname, formatHostNetworkHosts, formatManagedHosts } from "../../src/plan/pod-dns.ts";

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
