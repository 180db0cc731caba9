import { describe, expect, test } from "bun:test";
import type { Service } from "../../src/base/api/service.ts";
import { allocateServices, assignService, numbersOf, type PortHolder } from "../../src/plan/service-addresses.ts";
import { DUAL, free, NEW, service } from "./service-world.ts";

const assign = (one: Service, others: Service[] = [], known = NEW, holderOf: PortHolder = free) =>
  assignService(one, numbersOf(others, known), holderOf, "");

describe("a written Service", () => {
  test("has the address that the allocation of all Services gives it", () => {
    const { spec, problems } = assign(service("web"));
    const { addresses } = allocateServices([service("web")], NEW, free);
    expect(spec).toEqual({
      type: "ClusterIP",
      clusterIP: addresses.clusterIps["default/web"]!,
      clusterIPs: [addresses.clusterIps["default/web"]!],
      ports: [{ port: 80, protocol: "TCP" }],
    });
    expect(problems).toEqual([]);
    expect(allocateServices([{ ...service("web"), spec }], addresses, free).addresses).toEqual(addresses);
  });

  test("gets no address that another one has, by its text or by the allocation", () => {
    const ip = assign(service("web")).spec.clusterIP!;
    expect(assign(service("web"), [service("a", { clusterIP: ip })]).spec.clusterIP).not.toBe(ip);
    const known = { ...NEW, clusterIps: { "default/a": ip } };
    expect(assign(service("web"), [service("a")], known).spec.clusterIP).not.toBe(ip);
    // The record of a Service that is gone takes nothing.
    expect(assign(service("web"), [], known).spec.clusterIP).toBe(ip);
  });

  test.each([
    ["10.96.0.10", "10.96.0.10: provided IP is already allocated"],
    [
      "10.43.0.1",
      "10.43.0.1: the provided IP (10.43.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16",
    ],
  ])("is refused with %s", (clusterIP, why) => {
    const { problems } = assign(service("web", { clusterIP }), [service("a", { clusterIP: "10.96.0.10" })]);
    const message = `failed to allocate IP ${why}`;
    expect(problems).toEqual([{ field: "spec.clusterIPs", value: [clusterIP], message }]);
  });

  test("has a node port of the range that was set, and may name no other", () => {
    const inRange = (one: Service) => assignService(one, numbersOf([], NEW, "8000-8009"), free, "");
    const ported = (...ports: object[]) => service("web", { type: "NodePort", ports });
    const { spec, problems } = inRange(ported({ port: 80, nodePort: 8009 }, { port: 81 }, { port: 82 }));
    const chosen = spec.ports!.map(({ nodePort = 0 }) => nodePort);
    expect([new Set(chosen).size, Math.min(...chosen) >= 8000, Math.max(...chosen), problems]).toEqual([
      3,
      true,
      8009,
      [],
    ]);
    const message = "provided port is not in the valid range. The range of valid ports is 8000-8009";
    const refused = inRange(ported({ port: 80, nodePort: 7999 })).problems;
    expect(refused).toEqual([{ field: "spec.ports[0].nodePort", value: 7999, message }]);
    expect(assign(ported({ port: 80, nodePort: 7999 })).problems).toEqual([]);
    const { addresses } = allocateServices([ported({ port: 80 })], NEW, free, "", "8000-8000");
    expect(Object.values(addresses.nodePorts)).toEqual([8000]);
  });

  test("has addresses of both families, and those that it had", () => {
    const dual = { ipFamilyPolicy: "PreferDualStack" };
    const { spec, problems } = assign(service("web", dual), [], DUAL);
    expect(spec).toMatchObject({ ipFamilies: ["IPv4", "IPv6"], clusterIP: spec.clusterIPs![0], ...dual });
    expect(problems).toEqual([]);
    expect(assign({ ...service("web"), spec }, [], DUAL).spec).toEqual(spec);
    const single = assign(service("web"), [], DUAL).spec;
    expect(single.clusterIPs).toEqual([spec.clusterIPs![0]!]);
    const upgraded = assign({ ...service("web"), spec: { ...single, ...dual, ipFamilies: ["IPv4"] } }, [], DUAL).spec;
    expect(upgraded).toEqual(spec);
    expect(assign(service("headless", { ...dual, clusterIP: "None" }), [], DUAL).spec.ipFamilies).toEqual([
      "IPv4",
      "IPv6",
    ]);
    const message = "this cluster is not configured for dual-stack services";
    const refused = assign(service("web", { ipFamilyPolicy: "RequireDualStack" }));
    expect(refused.problems).toEqual([{ field: "spec.ipFamilyPolicy", value: "RequireDualStack", message }]);
  });

  test("needs no address when it is headless or an external name, or where there are none", () => {
    const outside = service("outside", { type: "ExternalName", externalName: "example.com" });
    for (const one of [outside, service("headless", { clusterIP: "None" })]) {
      expect(assign(one)).toEqual({ spec: one.spec, problems: [] });
    }
    expect(assign(service("web"), [], { ...NEW, range: "" }).spec.clusterIP).toBeUndefined();
  });

  test("has free node ports: none of its own, of others, or of a program", () => {
    const ports = [
      { name: "a", port: 80, protocol: "TCP" },
      { name: "b", port: 81, protocol: "TCP" },
    ];
    const web = service("web", { type: "NodePort", ports });
    const [a, b] = assign(web).spec.ports!.map(({ nodePort }) => nodePort!);
    expect(a).not.toBe(b);
    const other = service("other", { type: "NodePort", ports: [{ port: 1, protocol: "TCP", nodePort: a }] });
    expect(assign(web, [other]).spec.ports![0]!.nodePort).not.toBe(a);
    const held = assign(web, [], NEW, (_, port) => (port === a ? "nginx" : undefined)).spec.ports![0]!.nodePort;
    expect(held).not.toBe(a);
    const own = { ...web, spec: { ...web.spec, ports: [ports[0]!, { ...ports[1]!, nodePort: a! }] } } as Service;
    expect(assign(own).spec.ports![0]!.nodePort).not.toBe(a);
  });

  test("is refused with a node port of another Service, in the API server's words", () => {
    const wish = { type: "NodePort", ports: [{ port: 80, protocol: "TCP", nodePort: 30080 }] };
    const refusal = [{ field: "spec.ports[0].nodePort", value: 30080, message: "provided port is already allocated" }];
    expect(assign(service("web", wish), [service("other", wish)]).problems).toEqual(refusal);
    const given = { ...NEW, nodePorts: { "default/other TCP/80": 30080 } };
    expect(assign(service("web", wish), [service("other", { type: "NodePort" })], given).problems).toEqual(refusal);
    const udp = { type: "NodePort", ports: [{ port: 80, protocol: "UDP", nodePort: 30080 }] };
    expect(assign(service("web", wish), [service("other", udp)]).problems).toEqual([]);
  });
});
