import { expect, test } from "bun:test";
import type { ClusterClient } from "../../../src/cluster/client/cluster-client.ts";
import { ClusterServices } from "../../../src/cluster/objects/service-environment.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const podOf = (source: string) =>
  aPod({}, { name: "web", namespace: "default", annotations: { "kubernetes.io/config.source": source } });

function aWorld() {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  const services = new ClusterServices(api as unknown as ClusterClient, clock, {
    read: () => undefined,
    write: () => {},
  } as never);
  return { clock, api, services };
}

test("before the Services are known a pod of the API waits, and a static pod starts without their variables", () => {
  const { services } = aWorld();
  expect(() => services.environmentOf(podOf("api"))).toThrow("services have not yet been read");
  expect([...services.environmentOf(podOf("file"))]).toEqual([]);
});

test("both learn the Services that are known", async () => {
  const { clock, api, services } = aWorld();
  const spec = { clusterIP: "10.96.0.1", ports: [{ port: 443 }] };
  const items = [{ metadata: { name: "kubernetes", namespace: "default" }, spec }];
  api.set("/api/v1/services", { metadata: { resourceVersion: "1" }, items });
  services.start();
  await clock.advance(0);
  for (const source of ["api", "file"])
    expect(services.environmentOf(podOf(source)).get("KUBERNETES_SERVICE_HOST")).toBe("10.96.0.1");
  await services.stop();
});
