import { expect, test } from "bun:test";
import { formatHostNetworkHosts, formatManagedHosts } from "../../src/plan/hosts-file.ts";

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
