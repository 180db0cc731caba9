import { describe, expect, test } from "bun:test";
import { assignService, numbersOf } from "../../../src/plan/service-addresses.ts";
import { anApiServer } from "../support.ts";

const PATH = "/api/v1/namespaces/default/services";
const known = { range: "10.96.0.0/16,fd00:96::/112", clusterIps: {}, ports: {}, nodePorts: {} };
const ports = [{ port: 80, protocol: "TCP" }];

const anApi = () =>
  anApiServer({
    assign: (definition, object) =>
      definition.kind === "Service"
        ? { ...object, spec: assignService(object as never, numbersOf([], known), () => undefined, "").spec }
        : object,
  });
const service = (spec: object = {}) => ({
  metadata: { name: "web" },
  spec: { selector: { app: "web" }, ports, ...spec },
});

describe("a Service that is created", () => {
  test("is answered as upstream does, and kept with its address", async () => {
    const api = anApi();
    const { status, json } = await api.post(PATH, service({ type: "NodePort", sessionAffinity: "ClientIP" }));
    expect(status).toBe(201);
    const { clusterIP, ports } = json.spec;
    expect(json.spec).toEqual({
      type: "NodePort",
      selector: { app: "web" },
      clusterIP: expect.stringMatching(/^10\.96\./),
      clusterIPs: [clusterIP],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      externalTrafficPolicy: "Cluster",
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      ports: [{ port: 80, protocol: "TCP", targetPort: 80, nodePort: expect.any(Number) }],
    });
    const kept = api.files.get("services:default/web")!.spec;
    expect(kept).toMatchObject({ clusterIP, ports: [{ nodePort: ports[0].nodePort }] });
    const owned = JSON.stringify(json.metadata.managedFields);
    expect(owned).toContain("f:selector");
    expect(owned).not.toMatch(/clusterIP|nodePort/);
  });

  test("has its address in the answer to a dry run and to server-side apply", async () => {
    const api = anApi();
    const dry = await api.post(`${PATH}?dryRun=All`, service());
    expect(api.store.get("services", "default", "web")).toBeUndefined();
    const body = { apiVersion: "v1", kind: "Service", ...service() };
    const applied = await api.patch(`${PATH}/web?fieldManager=me`, body, "apply-patch+yaml");
    expect(applied.json.spec.clusterIP).toBe(dry.json.spec.clusterIP);
    const again = await api.patch(`${PATH}/web?fieldManager=me`, body, "apply-patch+yaml");
    expect(again.json).toEqual(applied.json);
  });
});

describe("a Service that is changed", () => {
  const created = async (spec: object) => {
    const api = anApi();
    const { json } = await api.post(PATH, service(spec));
    return { api, spec: json.spec };
  };

  test("keeps the address and the node ports that the write does not name", async () => {
    const { api, spec } = await created({ type: "NodePort" });
    const { status, json } = await api.put(`${PATH}/web`, service({ type: "NodePort", ports: [{ port: 81 }] }));
    expect(status).toBe(200);
    expect(json.spec.clusterIP).toBe(spec.clusterIP);
    expect(json.spec.ports[0].nodePort).toBe(spec.ports[0].nodePort);
    const version = json.metadata.resourceVersion;
    const same = await api.put(`${PATH}/web`, service({ type: "NodePort", ports: [{ port: 81 }] }));
    expect(same.json.metadata.resourceVersion).toBe(version);
  });

  test("does not get another address", async () => {
    const { api } = await created({ clusterIP: "10.96.0.10" });
    for (const clusterIP of ["10.96.0.11", "None"]) {
      const { status, json } = await api.patch(`${PATH}/web`, { spec: { clusterIP } });
      expect(status).toBe(422);
      const message = `spec.clusterIPs[0]: Invalid value: ["${clusterIP}"]: may not change once set`;
      expect(json.message).toBe(`Service "web" is invalid: ${message}`);
    }
  });

  test("gets its second address with its policy, and loses it with it in a write of what was read", async () => {
    const { api, spec } = await created({});
    const { json: dual } = await api.patch(`${PATH}/web`, { spec: { ipFamilyPolicy: "PreferDualStack" } });
    expect(dual.spec.clusterIPs).toEqual([spec.clusterIP, expect.stringMatching(/^fd00:96::/)]);
    expect(dual.spec.ipFamilies).toEqual(["IPv4", "IPv6"]);
    const other = { spec: { clusterIPs: [spec.clusterIP, "fd00:96::1"] } };
    const refused = await api.patch(`${PATH}/web`, other);
    expect([refused.status, refused.json.message]).toEqual([422, expect.stringContaining("spec.clusterIPs[1]")]);
    const body = { ...dual, spec: { ...dual.spec, ipFamilyPolicy: "SingleStack" } };
    const single = await api.put(`${PATH}/web`, body);
    expect(single.status).toBe(200);
    expect(single.json.spec).toEqual(spec);
  });

  test("loses its address as an ExternalName, and gets one again", async () => {
    const { api, spec } = await created({});
    const outside = { spec: { type: "ExternalName", externalName: "example.com" } };
    const gone = await api.patch(`${PATH}/web`, outside);
    expect(gone.status).toBe(200);
    expect(gone.json.spec).toEqual({
      type: "ExternalName",
      externalName: "example.com",
      selector: { app: "web" },
      sessionAffinity: "None",
      ports: spec.ports,
    });
    const back = await api.patch(`${PATH}/web`, { spec: { type: "ClusterIP", externalName: null } });
    expect(back.json.spec).toEqual(spec);
  });

  test("loses its node ports as a ClusterIP, in a write of what was read", async () => {
    const { api, spec } = await created({ type: "NodePort" });
    const read = (await api.get(`${PATH}/web`)).json;
    const { status, json } = await api.put(`${PATH}/web`, { ...read, spec: { ...read.spec, type: "ClusterIP" } });
    expect(status).toBe(200);
    expect(json.spec.ports).toEqual([{ port: 80, protocol: "TCP", targetPort: 80 }]);
    expect(json.spec.externalTrafficPolicy).toBeUndefined();
    expect(json.spec.clusterIP).toBe(spec.clusterIP);
  });

  test.each([{ externalTrafficPolicy: "Cluster" }, { type: "NodePort" }, { type: "ClusterIP" }])(
    "loses its health check with %j, in a write of what was read",
    async (changes) => {
      const health = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: 31999 };
      const { api } = await created(health);
      const read = (await api.get(`${PATH}/web`)).json;
      const { status, json } = await api.put(`${PATH}/web`, { ...read, spec: { ...read.spec, ...changes } });
      expect([status, json.spec.healthCheckNodePort]).toEqual([200, undefined]);
    },
  );

  test("switches session affinity off in a write of what was read", async () => {
    const { api } = await created({ sessionAffinity: "ClientIP" });
    const read = (await api.get(`${PATH}/web`)).json;
    const { status, json } = await api.put(`${PATH}/web`, { ...read, spec: { ...read.spec, sessionAffinity: "None" } });
    expect(status).toBe(200);
    expect(json.spec.sessionAffinityConfig).toBeUndefined();
  });

  test("is named when it claims node ports that its type has not", async () => {
    const { api } = await created({});
    const { status, json } = await api.patch(`${PATH}/web`, { spec: { ports: [{ port: 80, nodePort: 30080 }] } });
    expect(status).toBe(422);
    expect(json.message).toContain("spec.ports[0].nodePort");
  });
});
