import { describe, expect, test } from "bun:test";
import type { Service } from "../../src/base/api/service.ts";
import { rangeOfAddress } from "../../src/base/text/ip-range.ts";
import {
  allocateServices,
  chooseRange,
  familiesOf,
  parseRanges,
  publishedPortsOf,
  type ServiceAddresses,
} from "../../src/plan/service-addresses.ts";
import { DUAL, free, NEW, service } from "./service-world.ts";

const problemsOf = ({ problems }: ReturnType<typeof allocateServices>) =>
  Object.fromEntries([...problems].map(([name, { message }]) => [name, message]));

test("the range is the first one that overlaps no network of the machine", () => {
  const networks = (...texts: string[]) => texts.map((text) => rangeOfAddress(text)!);
  expect(chooseRange(networks("172.17.0.1/16"))).toBe("10.96.0.0/16");
  expect(chooseRange(networks("10.96.7.1/24", "10.97.0.0/16"))).toBe("10.98.0.0/16");
  expect(chooseRange(networks("10.0.0.0/8"))).toBe("172.29.0.0/16");
  expect(chooseRange(networks("0.0.0.0/0"))).toBeUndefined();
});

describe("cluster IPs", () => {
  test("are different, in the range, kept, and the same after a Service was away", () => {
    const services = ["a", "b", "c"].map((name) => service(name));
    const { addresses } = allocateServices(services, NEW, free);
    const ips = Object.values(addresses.clusterIps);
    expect(new Set(ips).size).toBe(3);
    expect(ips.every((ip) => /^10\.96\.\d+\.\d+$/.test(ip))).toBe(true);
    expect(allocateServices(services.toReversed(), addresses, free).addresses.clusterIps).toEqual(addresses.clusterIps);
    const without = allocateServices(services.slice(1), addresses, free).addresses;
    expect(Object.keys(without.clusterIps)).toEqual(["default/b", "default/c"]);
    expect(allocateServices(services, without, free).addresses.clusterIps).toEqual(addresses.clusterIps);
  });

  test("differ between two kubelet-ts of one machine", () => {
    const of = (seed: string) => allocateServices([service("a")], NEW, free, seed).addresses.clusterIps["default/a"];
    expect(of("one")).not.toEqual(of("two"));
  });

  test("are not for headless Services and external names", () => {
    const outside = service("outside", { type: "ExternalName", externalName: "example.com" });
    const services = [service("headless", { clusterIP: "None" }), outside];
    expect(allocateServices(services, NEW, free).addresses.clusterIps).toEqual({});
  });

  test("of manifests go before those that are chosen", () => {
    const small = { ...NEW, range: "10.96.0.0/28" };
    const chosen = allocateServices([service("a")], small, free).addresses.clusterIps["default/a"]!;
    const { addresses } = allocateServices([service("a"), service("b", { clusterIP: chosen })], small, free);
    expect(addresses.clusterIps["default/b"]).toBe(chosen);
    expect(addresses.clusterIps["default/a"]).not.toBe(chosen);
  });

  test("of manifests that another Service has, or that are in no range, are replaced, which is reported", () => {
    const known = allocateServices([service("a", { clusterIP: "10.96.0.10" })], NEW, free).addresses;
    const wishes = { b: "10.96.0.10", a: "10.96.0.10", c: "10.43.0.10" };
    const services = Object.entries(wishes).map(([name, clusterIP]) => service(name, { clusterIP }));
    const outcome = allocateServices(services, known, free);
    expect(outcome.addresses.clusterIps["default/a"]).toBe("10.96.0.10");
    expect(outcome.addresses.clusterIps["default/b"]).toMatch(/^10\.96\./);
    expect(problemsOf(outcome)).toEqual({
      "default/b": 'clusterIP 10.96.0.10 is that of Service "default/a": it has another one',
      "default/c":
        "clusterIP 10.43.0.10 is not in 10.96.0.0/16 (--service-cluster-ip-range), which Services of this machine have: it has another one",
    });
  });

  test("may run out", () => {
    const services = Array.from({ length: 15 }, (_, index) => service(`s${index}`));
    const outcome = allocateServices(services, { ...NEW, range: "10.96.0.0/28" }, free);
    expect(Object.keys(outcome.addresses.clusterIps)).toHaveLength(14);
    expect(problemsOf(outcome)).toEqual({ "default/s14": "10.96.0.0/28 has no free address" });
  });
});

describe("families", () => {
  const [both, one] = [["IPv4", "IPv6"], ["IPv4"]] as const;
  const policy = (ipFamilyPolicy: string, more: object = {}) => ({ ipFamilyPolicy, ...more });
  test.each([
    ["the first range is the default", {}, DUAL.range, one, []],
    ["the first range is the default", {}, "fd00:96::/112,10.96.0.0/16", ["IPv6"], []],
    ["a family is asked for", { ipFamilies: ["IPv6"] }, DUAL.range, ["IPv6"], []],
    ["an address is asked for", { clusterIP: "fd00:96::5" }, DUAL.range, ["IPv6"], []],
    ["both where there are both", policy("PreferDualStack"), DUAL.range, both, []],
    ["both where there is one", policy("PreferDualStack"), NEW.range, one, []],
    ["both in this order", policy("RequireDualStack", { ipFamilies: ["IPv6"] }), DUAL.range, ["IPv6", "IPv4"], []],
    ["both of a headless one", policy("PreferDualStack", { clusterIP: "None" }), DUAL.range, both, []],
    ["too much is asked for", policy("RequireDualStack"), NEW.range, one, ["spec.ipFamilyPolicy RequireDualStack"]],
    ["too much is asked for", { ipFamilies: ["IPv6"] }, NEW.range, one, ["spec.ipFamilies[0] IPv6"]],
    ["a contradiction", { ipFamilies: ["IPv4", "IPv6"] }, DUAL.range, one, ["spec.ipFamilyPolicy SingleStack"]],
    ["no addresses at all", policy("RequireDualStack"), "", one, []],
  ] as const)("%s: %j of %s", (_, spec, range, families, problems) => {
    const found = familiesOf(service("web", spec), parseRanges(range));
    expect(found.families).toEqual([...families]);
    expect(found.problems.map(({ field, value }) => `${field} ${value}`)).toEqual([...problems]);
  });

  test("each has an address that is kept, also when the policy changes", () => {
    const dual = service("web", { ipFamilyPolicy: "PreferDualStack" });
    const { addresses } = allocateServices([dual], DUAL, free);
    const [four] = addresses.clusterIps["default/web"]!.split(",");
    expect(addresses.clusterIps["default/web"]).toMatch(/^10\.96\.\d+\.\d+,fd00:96::/);
    const single = allocateServices([service("web")], addresses, free).addresses;
    expect(single.clusterIps["default/web"]).toBe(four!);
    expect(allocateServices([dual], single, free).addresses).toEqual(addresses);
    // Another range of IPv6: only that address is another one.
    const moved = allocateServices([dual], { ...addresses, range: "10.96.0.0/16,fd00:97::/112" }, free).addresses;
    expect(moved.clusterIps["default/web"]).toStartWith(`${four},fd00:97::`);
  });

  test("addresses of manifests are compared in one form, and what cannot be met is reported", () => {
    const spec = { ipFamilyPolicy: "RequireDualStack", clusterIPs: ["10.96.0.9", "fd00:96:0::0A"] };
    expect(allocateServices([service("web", spec)], DUAL, free).addresses.clusterIps["default/web"]).toBe(
      "10.96.0.9,fd00:96::a",
    );
    const outcome = allocateServices([service("web", spec)], NEW, free);
    expect(outcome.addresses.clusterIps["default/web"]).toBe("10.96.0.9");
    expect(problemsOf(outcome)["default/web"]).toContain("not configured");
  });
});

describe("ports of the machine", () => {
  const publishedBy = (one: Service, addresses: ServiceAddresses) =>
    (one.spec.ports ?? []).map((port) => publishedPortsOf(one, port, addresses));

  test("are those of a LoadBalancer, and a node port that is given or chosen", () => {
    const services = [
      service("lb", { type: "LoadBalancer" }),
      service("given", { type: "NodePort", ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }] }),
      service("chosen", { type: "NodePort" }),
      service("inside"),
    ];
    const { addresses, problems } = allocateServices(services, NEW, free);
    expect(problems.size).toBe(0);
    const [lb, given, chosen, inside] = services.map((one) => publishedBy(one, addresses));
    expect([lb, given, inside]).toEqual([[[80]], [[30080]], [[]]]);
    const [number = 0] = chosen![0]!;
    expect(number >= 30000 && number < 32768).toBe(true);
    // Another program takes it later: the rules came first.
    const later = allocateServices(services, addresses, (_, _port, isOwn) => (isOwn ? undefined : "nginx (pid 812)"));
    expect(later.addresses).toEqual(addresses);
    // Another program had it before: the next one.
    const held = allocateServices(services, NEW, (_, port) => (port === number ? "nginx (pid 812)" : undefined));
    expect(publishedBy(services[2]!, held.addresses)).toEqual([[30000 + ((number - 30000 + 1) % 2768)]]);
  });

  test("that are held stay with their holder, and the Service is not published at all", () => {
    const first = allocateServices([service("first", { type: "LoadBalancer" })], NEW, free).addresses;
    const both = [{ port: 443, name: "tls", protocol: "TCP" }].concat({ port: 80, name: "web", protocol: "TCP" });
    const services = [
      service("second", { type: "LoadBalancer", ports: both }),
      service("first", { type: "LoadBalancer" }),
      service("dns", { type: "LoadBalancer", ports: [{ port: 53, protocol: "UDP" }] }),
    ];
    const holderOf = (protocol: string) => (protocol === "UDP" ? "dnsmasq (pid 7)" : undefined);
    const outcome = allocateServices(services, first, holderOf);
    expect(problemsOf(outcome)).toEqual({
      "default/dns": "it is not published: port UDP/53 of the machine is held by dnsmasq (pid 7)",
      "default/second": 'it is not published: port TCP/80 of the machine is held by Service "default/first"',
    });
    expect(outcome.addresses.ports).toEqual({ "TCP/80": "default/first" });
    expect(Object.keys(outcome.addresses.clusterIps)).toHaveLength(3);
  });
});
