import { describe, expect, test } from "bun:test";
import {
  ClusterServices,
  computeServiceEnvironment,
  type RuntimeClassEntry,
  RuntimeClasses,
  type ServiceAddress,
} from "../../../src/cluster/objects/stored-lists.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** A file that an earlier process may have written. */
function aFile<T>(before?: readonly T[]) {
  let content = before;
  const write = (value: readonly T[]) => {
    content = value;
  };
  return { read: () => content, write };
}

function aWorld() {
  const clock = new FakeClock();
  return { clock, api: new FakeApi(clock) };
}

const gvisor: RuntimeClassEntry = ["gvisor", "runsc"];
const classOf = ([name, handler]: RuntimeClassEntry) => ({ metadata: { name }, handler });

test.each([
  { when: "its class is there", classes: [gvisor], asked: "gvisor", want: "runsc" },
  {
    when: "its class is docker's, as for dockershim",
    classes: [["usual", "docker"] as const],
    asked: "usual",
    want: "",
  },
  {
    when: "its class is not there",
    classes: [],
    asked: "gvisor",
    want: 'runtimeclass.node.k8s.io "gvisor" not found',
  },
  { when: "an earlier process knew the class", stored: [gvisor], asked: "gvisor", want: "runsc" },
  { when: "the API server has never answered", asked: "gvisor", want: "the API server has not answered" },
  { when: "it has no class, which is not asked for", asked: undefined, want: "" },
])("the engine's runtime of a pod: when $when", async ({ classes, stored, asked, want }) => {
  const { clock, api } = aWorld();
  const file = aFile<RuntimeClassEntry>(stored);
  const items = classes?.map(classOf);
  if (items) api.set("/apis/node.k8s.io/v1/runtimeclasses", { metadata: { resourceVersion: "1" }, items });
  const runtimes = new RuntimeClasses(api, clock, file);
  const found = runtimes.handlerOf(aPod(asked === undefined ? {} : { runtimeClassName: asked })).catch(String);
  await clock.advance(5_000);
  if (want === "") expect(await found).toBe("");
  else expect(await found).toContain(want);
  if (classes) expect(file.read()).toEqual(classes);
  if (asked === undefined) expect(api.requests).toEqual([]);
  await runtimes.stop();
});

describe("the Services", () => {
  const podOf = (source: string) =>
    aPod({}, { name: "web", namespace: "default", annotations: { "kubernetes.io/config.source": source } });

  test("unknown: a pod of the API waits, and a static pod starts without their variables", () => {
    const { clock, api } = aWorld();
    const services = new ClusterServices(api, clock, aFile());
    expect(() => services.environmentOf(podOf("api"))).toThrow("services have not yet been read");
    expect([...services.environmentOf(podOf("file"))]).toEqual([]);
  });

  test("known: both learn them", async () => {
    const { clock, api } = aWorld();
    const services = new ClusterServices(api, clock, aFile());
    const spec = { clusterIP: "10.96.0.1", ports: [{ port: 443 }] };
    const items = [{ metadata: { name: "kubernetes", namespace: "default" }, spec }];
    api.set("/api/v1/services", { metadata: { resourceVersion: "1" }, items });
    services.start();
    await clock.advance(0);
    for (const source of ["api", "file"])
      expect(services.environmentOf(podOf(source)).get("KUBERNETES_SERVICE_HOST")).toBe("10.96.0.1");
    await services.stop();
  });
});

const service = (namespace: string, name: string, clusterIP: string, ...ports: number[]): ServiceAddress => ({
  namespace,
  name,
  clusterIP,
  ports: ports.map((port, index) => ({ port, name: `p-${index}`, protocol: "TCP" })),
});
const MASTER = service("default", "kubernetes", "10.96.0.1", 443);

test("the variables of a Service are upstream's", () => {
  expect(Object.fromEntries(computeServiceEnvironment([service("a", "my-db", "10.0.0.5", 80, 81)], "a", true))).toEqual(
    {
      MY_DB_SERVICE_HOST: "10.0.0.5",
      MY_DB_SERVICE_PORT: "80",
      MY_DB_SERVICE_PORT_P_0: "80",
      MY_DB_SERVICE_PORT_P_1: "81",
      MY_DB_PORT: "tcp://10.0.0.5:80",
      MY_DB_PORT_80_TCP: "tcp://10.0.0.5:80",
      MY_DB_PORT_80_TCP_PROTO: "tcp",
      MY_DB_PORT_80_TCP_PORT: "80",
      MY_DB_PORT_80_TCP_ADDR: "10.0.0.5",
      MY_DB_PORT_81_TCP: "tcp://10.0.0.5:81",
      MY_DB_PORT_81_TCP_PROTO: "tcp",
      MY_DB_PORT_81_TCP_PORT: "81",
      MY_DB_PORT_81_TCP_ADDR: "10.0.0.5",
    },
  );
});

test.each([
  { when: "own namespace and the API server", namespace: "a", links: true, want: ["KUBERNETES", "WEB"] },
  { when: "without links the API server alone", namespace: "a", links: false, want: ["KUBERNETES"] },
  { when: "another namespace", namespace: "b", links: true, want: ["KUBERNETES"] },
])("$when", ({ namespace, links, want }) => {
  const services = [service("a", "web", "10.0.0.5", 80), service("a", "headless", "None", 80), MASTER];
  const names = [...computeServiceEnvironment(services, namespace, links).keys()];
  expect(names.filter((name) => name.endsWith("_SERVICE_HOST")).sort()).toEqual(
    want.map((name) => `${name}_SERVICE_HOST`),
  );
});

test("a Service of the pod's namespace goes before the API server's of the same name", () => {
  const own = service("a", "kubernetes", "10.0.0.9", 443);
  for (const services of [
    [MASTER, own],
    [own, MASTER],
  ]) {
    expect(computeServiceEnvironment(services, "a", true).get("KUBERNETES_SERVICE_HOST")).toBe("10.0.0.9");
  }
});
