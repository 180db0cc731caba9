import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { IpFamily } from "../../src/base/text/ip-range.ts";
import { toEndpointObjects } from "../../src/controllers/endpoint-objects.ts";
import { ServicePods } from "../../src/plan/service-endpoints.ts";
import { aService, aServicePod } from "./workload-world.ts";

const NODE = { nodeName: "node1", startedAt: "2026-01-02T03:04:05Z" };

const pod = (name: string, ip: string, ready: boolean, port = 8000) =>
  aServicePod(name, ip, { ready, ports: [{ name: "http", containerPort: port, protocol: "TCP" }] });

const toObjects = (spec: object, ...pods: Pod[]) => {
  const service = aService("web", { ports: [{ port: 80, targetPort: "http" }], ...spec }, { labels: { team: "a" } });
  return toEndpointObjects(service, new ServicePods(pods), { ...NODE, families: ["IPv4"] });
};

test("a Service has Endpoints and a slice with its pods, Ready or not", () => {
  const [endpoints, slice, ...others] = toObjects({}, pod("a", "10.0.0.1", true), pod("b", "10.0.0.2", false));
  expect(others).toEqual([]);
  const target = (name: string) => ({ kind: "Pod", namespace: "default", name, uid: name });
  const ports = [{ port: 8000, protocol: "TCP" }];
  expect(endpoints).toMatchObject({
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { name: "web", namespace: "default", labels: { team: "a" }, creationTimestamp: NODE.startedAt },
    subsets: [
      {
        addresses: [{ ip: "10.0.0.1", nodeName: "node1", targetRef: target("a") }],
        notReadyAddresses: [{ ip: "10.0.0.2", nodeName: "node1", targetRef: target("b") }],
        ports,
      },
    ],
  });
  expect(slice).toMatchObject({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      labels: { team: "a", "kubernetes.io/service-name": "web" },
      ownerReferences: [{ kind: "Service", name: "web" }],
    },
    addressType: "IPv4",
    endpoints: [
      {
        addresses: ["10.0.0.1"],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: target("a"),
      },
      { addresses: ["10.0.0.2"], conditions: { ready: false, serving: false }, targetRef: target("b") },
    ],
    ports: [{ name: "", port: 8000, protocol: "TCP" }],
  });
});

test("a Service of both families has slices of both, and Endpoints of its first", () => {
  const both = pod("a", "10.0.0.1", true);
  both.status!.podIPs!.push({ ip: "fd00::1" });
  const service = aService("web", { ports: [{ port: 80, targetPort: "http" }] });
  const pods = new ServicePods([both, pod("b", "10.0.0.2", true)]);
  const of = (...families: IpFamily[]) => toEndpointObjects(service, pods, { ...NODE, families });
  const addressesOf = (objects: ReturnType<typeof of>) =>
    (objects as unknown as { endpoints?: { addresses: string[] }[] }[]).map(({ endpoints }) =>
      endpoints?.flatMap(({ addresses }) => addresses),
    );
  const dual = of("IPv6", "IPv4");
  expect(addressesOf(dual)).toEqual([undefined, ["fd00::1"], ["10.0.0.1", "10.0.0.2"]]);
  expect(dual[0]).toMatchObject({ subsets: [{ addresses: [{ ip: "fd00::1" }] }] });
  expect(dual[1]!.metadata.name).not.toBe(dual[2]!.metadata.name);
  expect(dual[2]).toEqual(of("IPv4")[1]!);
});

test("a pod whose subdomain is the Service has its host name in both", () => {
  const own = pod("a", "10.0.0.1", true);
  Object.assign(own.spec, { hostname: "db-0", subdomain: "web" });
  const [endpoints, slice] = toObjects({}, own);
  expect(endpoints).toMatchObject({ subsets: [{ addresses: [{ ip: "10.0.0.1", hostname: "db-0" }] }] });
  expect(slice).toMatchObject({ endpoints: [{ addresses: ["10.0.0.1"], hostname: "db-0" }] });
});

test("pods that give a named port other numbers are in slices of their own", () => {
  const objects = toObjects({}, pod("a", "10.0.0.1", true, 8000), pod("b", "10.0.0.2", true, 9000));
  const names = objects.map(({ metadata }) => metadata.name);
  expect(new Set(names).size).toBe(3);
  expect(objects.map(({ ports }) => ports)).toEqual([
    undefined,
    [{ name: "", port: 8000, protocol: "TCP" }],
    [{ name: "", port: 9000, protocol: "TCP" }],
  ]);
  expect(objects[0]!.subsets).toHaveLength(2);
});

test.each([
  ["a headless one without ports has its pods", { clusterIP: "None", ports: undefined }, [{ addresses: ["10.0.0.1"] }]],
  ["publishNotReadyAddresses makes all ready", { publishNotReadyAddresses: true }, [{ conditions: { ready: true } }]],
  ["a pod without the port is no endpoint", { ports: [{ port: 80, targetPort: "other" }] }, []],
  ["another selector leads nowhere", { selector: { app: "db" } }, []],
])("%s", (_, spec, want) => {
  expect(toObjects(spec, pod("a", "10.0.0.1", false))[1]!.endpoints).toMatchObject(want);
});

test("written Endpoints are mirrored into a slice of each family and set of ports", () => {
  const service = aService("db", { selector: undefined, ports: [{ name: "sql", port: 5432 }] });
  const ports = [{ name: "sql", port: 5432, protocol: "TCP" }];
  const written = (labels = {}) => ({
    metadata: { name: "db", namespace: "default", labels },
    subsets: [
      { addresses: [{ ip: "192.0.2.1", hostname: "a" }, { ip: "2001:db8::1" }], ports },
      { notReadyAddresses: [{ ip: "192.0.2.2" }], ports },
    ],
  });
  const of = (...all: ReturnType<typeof written>[]) =>
    toEndpointObjects(service, new ServicePods([], all), { ...NODE, families: ["IPv4"] });
  expect(of(written())).toMatchObject([
    {
      kind: "EndpointSlice",
      metadata: {
        labels: { "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io" },
        ownerReferences: [{ kind: "Endpoints", name: "db" }],
      },
      addressType: "IPv4",
      endpoints: [
        { addresses: ["192.0.2.1"], hostname: "a", conditions: { ready: true } },
        { addresses: ["192.0.2.2"], conditions: { ready: false } },
      ],
      ports,
    },
    { addressType: "IPv6", endpoints: [{ addresses: ["2001:db8::1"] }] },
  ]);
  expect(of(written({ "endpointslice.kubernetes.io/skip-mirror": "true" }))).toEqual([]);
});

test.each([
  ["without a selector", { selector: undefined }],
  ["of type ExternalName", { type: "ExternalName", externalName: "example.com" }],
])("a Service %s has none", (_, spec) => {
  expect(toObjects(spec, pod("a", "10.0.0.1", true))).toEqual([]);
});
