import { describe, expect, test } from "bun:test";
import type { EndpointSlice, Endpoints } from "../../src/base/api/endpoints.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Service, ServicePort } from "../../src/base/api/service.ts";
import {
  endpointsOf,
  type ServiceBackend,
  type ServiceEndpoint,
  ServicePods,
} from "../../src/plan/service-endpoints.ts";
import { aPod } from "../support/builders.ts";

interface PodCase {
  name: string;
  labels?: Record<string, string>;
  namespace?: string;
  ready?: boolean;
  phase?: string;
  ips?: string[];
  leaving?: boolean;
  ports?: object[];
}

const pod = ({ name, labels, namespace, ready, phase, ips, leaving, ports = [] }: PodCase): Pod => ({
  ...aPod({ containers: [{ name: "a", image: "b:1", ports }] } as unknown as Pod["spec"], {
    name,
    uid: name,
    namespace: namespace ?? "default",
    labels: labels ?? { app: "web", tier: "front" },
    ...(leaving && { deletionTimestamp: "2026-01-02T03:04:05Z" }),
  }),
  status: {
    phase: phase ?? "Running",
    podIPs: (ips ?? ["10.0.0.1"]).map((ip) => ({ ip })),
    conditions: [{ type: "Ready", status: (ready ?? true) ? "True" : "False" }],
  } as Pod["status"] & object,
});

const service = (spec: object = {}) =>
  ({
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { app: "web", tier: "front" }, ...spec },
  }) as unknown as Service;

const names = (found: readonly ServiceBackend[]) => (found as Pod[]).map(({ metadata }) => metadata.name);

test.each([
  ["Ready pods with all labels of the selector", {}, ["a"]],
  [
    "those that are not Ready or terminate, where they are published",
    { publishNotReadyAddresses: true },
    ["a", "unready", "leaving"],
  ],
  ["none without a selector", { selector: undefined }, []],
  ["none with an empty selector", { selector: {} }, []],
])("behind a Service are %s", (_, spec, want) => {
  const pods = [
    pod({ name: "a" }),
    pod({ name: "unready", ready: false }),
    pod({ name: "other", labels: { app: "web" } }),
    pod({ name: "elsewhere", namespace: "shop" }),
    pod({ name: "leaving", leaving: true }),
    pod({ name: "done", phase: "Succeeded" }),
    pod({ name: "without-address", ips: [] }),
  ];
  expect(names(new ServicePods(pods).behind(service(spec)))).toEqual(want);
});

test("what is behind a Service is found again where its pods, or what is written, have changed", () => {
  const [web, shop] = [pod({ name: "a" }), pod({ name: "b", labels: { app: "shop" } })];
  const [first, other, none] = ["web", "shop", "none"].map((app) => service({ selector: { app } }));
  const written = [{ metadata: { name: "web" }, subsets: [] }] as Endpoints[];
  const before = new ServicePods([web, shop], written);
  const seen = [first, other, none].map((each) => before.behind(each!));
  const left = pod({ name: "a", ready: false });
  const after = new ServicePods([left, shop, pod({ name: "c", labels: { app: "none" } })], written, before);
  expect([first, other, none].map((each) => names(after.behind(each!)))).toEqual([[], ["b"], ["c"]]);
  expect(after.behind(other!)).toBe(seen[1]!);
  expect(names(before.behind(first!))).toEqual(["a"]);
  expect(new ServicePods([left, shop], [], after).behind(other!)).not.toBe(seen[1]!);
  expect(new ServicePods([shop], written, after).behind(first!)).toEqual([]);
});

test.each([
  ["the port itself", { port: 80 }, [80, 80]],
  ["0 is the default", { port: 80, targetPort: 0 }, [80, 80]],
  ["a number", { port: 80, targetPort: 8080 }, [8080, 8080]],
  ["a name, which each pod gives another number", { port: 80, targetPort: "http" }, [8000, 9000]],
  ["a name of another protocol", { port: 80, targetPort: "http", protocol: "UDP" }, [53]],
  ["a name that no pod has", { port: 80, targetPort: "https" }, []],
])("an endpoint has the target port: %s", (_, port, want) => {
  const http = { name: "http", protocol: "TCP" };
  const udp = { name: "http", protocol: "UDP", containerPort: 53 };
  const pods = [
    pod({ name: "a", ports: [{ ...http, containerPort: 8000 }] }),
    pod({ name: "b", ips: ["10.0.0.2"], ports: [{ ...http, containerPort: 9000 }, udp] }),
  ];
  const found = endpointsOf({ protocol: "TCP", ...port } as ServicePort, pods, "IPv4");
  expect(found.map((endpoint) => endpoint.port)).toEqual(want);
});

test("an endpoint has the address of its family, and a pod without one is none", () => {
  const pods = [pod({ name: "a", ips: ["fd00::1", "10.0.0.2"] }), pod({ name: "b", ips: ["10.0.0.3"] })];
  const port = { port: 80, protocol: "TCP" } as ServicePort;
  expect(endpointsOf(port, pods, "IPv6")).toEqual([{ ip: "fd00::1", port: 80 }]);
  expect(endpointsOf(port, pods, "IPv4").map(({ ip }) => ip)).toEqual(["10.0.0.2", "10.0.0.3"]);
});

describe("written addresses", () => {
  const metadata = { name: "web", namespace: "default" };
  const ofSubsets = (...subsets: object[]) => ({ metadata, subsets }) as Endpoints;
  const slice = (endpoints: object[], more: object = {}) =>
    ({
      metadata: { name: "web-1", namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
      addressType: "IPv4",
      ports: [{ name: "sql", port: 5432, protocol: "TCP" }],
      endpoints,
      ...more,
    }) as unknown as EndpointSlice;
  const sql = [{ name: "sql", port: 5432, protocol: "TCP" }];
  const HERE = { ip: "192.0.2.1", port: 5432, isOutside: true as const };

  test.each<[string, object, (Endpoints | EndpointSlice)[], ServiceEndpoint[]]>([
    ["those of the port's name", {}, [ofSubsets({ addresses: [{ ip: "192.0.2.1" }], ports: sql })], [HERE]],
    ["no other name", {}, [ofSubsets({ addresses: [{ ip: "192.0.2.1" }], ports: [{ ...sql[0], name: "x" }] })], []],
    ["none that is not ready", {}, [ofSubsets({ notReadyAddresses: [{ ip: "192.0.2.1" }], ports: sql })], []],
    ["those of slices, where they are ready", {}, [slice([{ addresses: ["192.0.2.1", "192.0.2.2"] }])], [HERE]],
    ["none of an unready slice", {}, [slice([{ addresses: ["192.0.2.1"], conditions: { ready: false } }])], []],
    ["none of a name", {}, [slice([{ addresses: ["db.example.com"] }], { addressType: "FQDN" })], []],
    [
      "each once",
      {},
      [slice([{ addresses: ["192.0.2.1"] }]), ofSubsets({ addresses: [{ ip: "192.0.2.1" }], ports: sql })],
      [HERE],
    ],
    [
      "no Endpoints where there is a selector, as the controller replaces them",
      { selector: { app: "db" } },
      [ofSubsets({ addresses: [{ ip: "192.0.2.1" }], ports: sql })],
      [],
    ],
    ["slices also with a selector", { selector: { app: "db" } }, [slice([{ addresses: ["192.0.2.1"] }])], [HERE]],
  ])("%s", (_, spec, written, want) => {
    const found = new ServicePods([], written).behind(service({ selector: undefined, ...spec }));
    expect(endpointsOf({ name: "sql", port: 1, targetPort: 99, protocol: "TCP" }, found, "IPv4")).toEqual(want);
  });
});
