import { describe, expect, test } from "bun:test";
import { ClusterServices, type RuntimeClassEntry, RuntimeClasses } from "../../../src/cluster/objects/object-cache.ts";
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
  { when: "the class docker, as for dockershim", classes: [["usual", "docker"] as const], asked: "usual", want: "" },
  { when: "its class is not there", classes: [], asked: "gvisor", want: 'runtimeclass.node.k8s.io "gvisor" not found' },
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
