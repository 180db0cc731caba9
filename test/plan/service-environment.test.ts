import { expect, test } from "bun:test";
import { computeServiceEnvironment, type ServiceAddress } from "../../src/plan/service-environment.ts";

const service = (namespace: string, name: string, clusterIP: string, ...ports: number[]): ServiceAddress => ({
  namespace,
  name,
  clusterIP,
  ports: ports.map((port, index) => ({ port, name: `p-${index}`, protocol: "TCP" })),
});
const MASTER = service("default", "kubernetes", "10.96.0.1", 443);

test("the variables of a Service are upstream's", () => {
  const variables = computeServiceEnvironment([service("a", "my-db", "10.0.0.5", 80, 81)], "a", true);
  const ofPort = (port: string) => ({
    [`MY_DB_PORT_${port}_TCP`]: `tcp://10.0.0.5:${port}`,
    [`MY_DB_PORT_${port}_TCP_PROTO`]: "tcp",
    [`MY_DB_PORT_${port}_TCP_PORT`]: port,
    [`MY_DB_PORT_${port}_TCP_ADDR`]: "10.0.0.5",
  });
  expect(Object.fromEntries(variables)).toEqual({
    MY_DB_SERVICE_HOST: "10.0.0.5",
    MY_DB_SERVICE_PORT: "80",
    MY_DB_SERVICE_PORT_P_0: "80",
    MY_DB_SERVICE_PORT_P_1: "81",
    MY_DB_PORT: "tcp://10.0.0.5:80",
    ...ofPort("80"),
    ...ofPort("81"),
  });
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
