import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { computeDnsRecords, type ServiceTarget } from "../../src/plan/pod-dns.ts";
import { aPod } from "../support/builders.ts";

const HTTP = { name: "http", protocol: "TCP", port: 80, targetPort: "web" };

function target(name: string, parts: Partial<ServiceTarget> = {}, ports: object[] = [HTTP]): ServiceTarget {
  const service = { metadata: { name, namespace: "shop" }, spec: { type: "ClusterIP", ports } };
  return { service: service as ServiceTarget["service"], backends: [], fixed: [], ...parts };
}

const pod = (ips: string[], spec: Partial<Pod["spec"]> = {}): Pod => {
  const ports = [{ name: "web", containerPort: 8000, protocol: "TCP" as const }];
  const made = aPod({ containers: [{ ...aPod().spec.containers[0]!, ports }], ...spec });
  return { ...made, status: { podIPs: ips.map((ip) => ({ ip })) } as NonNullable<Pod["status"]> };
};

const DOMAIN = "shop.svc.cluster.local";
test.each<[what: string, ServiceTarget, hosts: string[], config: string[]]>([
  [
    "a Service has its cluster IP, and its named ports",
    target("db", { fixed: ["10.96.1.1"], backends: [pod(["10.0.0.1"])] }, [HTTP, { protocol: "UDP", port: 53 }]),
    [`10.96.1.1 db.${DOMAIN}`],
    [`srv-host=_http._tcp.db.${DOMAIN},db.${DOMAIN},80`],
  ],
  [
    "a headless Service has the addresses of its pods, and their ports",
    target("db", { backends: [pod(["10.0.0.1", "fd00::1"], { hostname: "db-0", subdomain: "db" })] }),
    [`10.0.0.1 db-0.db.${DOMAIN}`, `10.0.0.1 db.${DOMAIN}`, `fd00::1 db-0.db.${DOMAIN}`, `fd00::1 db.${DOMAIN}`],
    [`srv-host=_http._tcp.db.${DOMAIN},db-0.db.${DOMAIN},8000`],
  ],
  [
    "a pod without a host name is called by its address",
    target("db", { backends: [pod(["10.0.0.1"], { hostname: "x", subdomain: "other" })] }),
    [`10.0.0.1 10-0-0-1.db.${DOMAIN}`, `10.0.0.1 db.${DOMAIN}`],
    [`srv-host=_http._tcp.db.${DOMAIN},10-0-0-1.db.${DOMAIN},8000`],
  ],
  [
    "a pod without the port has no SRV record",
    target("db", { backends: [pod(["10.0.0.1"], { hostname: "db-0", subdomain: "db" })] }, [
      { ...HTTP, targetPort: "no" },
    ]),
    [`10.0.0.1 db-0.db.${DOMAIN}`, `10.0.0.1 db.${DOMAIN}`],
    [],
  ],
  [
    "text that is no name writes no line of a configuration",
    target("db", { fixed: ["10.96.1.1"] }, [
      { ...HTTP, name: "a\nserver=192.0.2.1" },
      { ...HTTP, name: "b,c" },
    ]),
    [`10.96.1.1 db.${DOMAIN}`],
    [],
  ],
  [
    "an external name is a CNAME record, and has the addresses of this machine",
    target("db", { fixed: ["203.0.113.5"], alias: "db.example.com" }),
    ["203.0.113.5 db.example.com"],
    [`cname=db.${DOMAIN},db.example.com`],
  ],
  [
    "an external name that is a Service has that one's records",
    target("db", { fixed: ["10.96.1.1"], alias: `web.${DOMAIN}` }),
    [],
    [`cname=db.${DOMAIN},web.${DOMAIN}`],
  ],
  ["external names in a circle have no record: dnsmasq would not start", target("db", { alias: "" }), [], []],
  ["nor does the name of a Service", target("db\n1.1.1.1 bank.test", { fixed: ["10.96.1.1"] }), [], []],
])("%s", (_what, one, hosts, config) => {
  const lines = (list: string[]) => list.map((line) => `${line}\n`).join("");
  expect(computeDnsRecords([one], [], "cluster.local")).toEqual({ hosts: lines(hosts), config: lines(config) });
});

test("a pod that has not ended has a name by its address in its namespace, after those by which its address is found", () => {
  const pods = [pod(["10.0.0.1", "fd00::1"]), pod(["10.0.0.2"])];
  Object.assign(pods[1]!.status!, { phase: "Succeeded" });
  expect(computeDnsRecords([target("db", { backends: [pods[0]!] })], pods, "cluster.local").hosts.split("\n")).toEqual([
    `10.0.0.1 10-0-0-1.db.${DOMAIN}`,
    `10.0.0.1 db.${DOMAIN}`,
    `fd00::1 10-0-0-1.db.${DOMAIN}`,
    `fd00::1 db.${DOMAIN}`,
    "10.0.0.1 10-0-0-1.default.pod.cluster.local",
    "fd00::1 fd00--1.default.pod.cluster.local",
    "",
  ]);
});

test("the texts of many pods are bounded, and each has whole lines", () => {
  const pods = Array.from({ length: 9000 }, (_, index) => pod([`10.1.${index >> 8}.${index & 255}`]));
  const { hosts, config } = computeDnsRecords([target("db", { backends: pods })], pods, "cluster.local");
  expect(hosts.length + config.length).toBeLessThan(1024 * 1024);
  expect(config).toMatch(/,8000\n$/);
});
