import { describe, expect, test } from "bun:test";
import { checkInputs, type NodeRules } from "../../src/cli/validate-inputs.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";

const RULES = { ...DEFAULT_KUBELET_OPTIONS, nodeName: "node1", comparesAllLabels: false };
const OPTIONS = { strictness: "warn", nodeName: "node1", allowPrivileged: true } as const;
const check = (manifest: object) =>
  checkInputs([{ file: "a.yaml", bytes: Buffer.from(JSON.stringify(manifest)) }], OPTIONS, RULES);
const aPod = (spec: object) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec });
const errorsOf = (manifest: object) =>
  check(manifest).flatMap(({ ok, findings }) =>
    findings.filter(({ severity }) => severity === "error").map(({ field, message }) => [ok, field, message]),
  );

const warningsOf = (...manifests: object[]) => warningsWhere(RULES, ...manifests);
const warningsWhere = (rules: NodeRules, ...manifests: object[]) => {
  const bytes = Buffer.from(manifests.map((manifest) => `---\n${JSON.stringify(manifest)}\n`).join(""));
  return checkInputs([{ file: "a.yaml", bytes }], OPTIONS, rules).flatMap(({ findings }) =>
    findings.map(({ field, message }) => `${field} ${message}`),
  );
};

const service = (selector: object, namespace = "default") => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace },
  spec: { selector, ports: [{ port: 80 }] },
});
const deployment = (replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: {
    replicas,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "a", image: "b:1" }] } },
  },
});
const endpoints = (port: string) => ({
  apiVersion: "v1",
  kind: "Endpoints",
  metadata: { name: "web" },
  subsets: [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ name: port, port: 5432 }] }],
});
const leadsNowhere = (why: string) => `spec has no selector, and ${why}: it leads nowhere`;
const nothing = (labels: string) => [`spec.selector selects no pod of this input: ${labels}`];

test.each([
  { when: "matches", of: [service({ app: "web" }), deployment(1)], want: [] },
  { when: "differs", of: [service({ app: "wbe" }), deployment(1)], want: nothing("their labels are app=web") },
  { when: "is in another namespace", of: [service({ app: "web" }, "prod"), deployment(1)], want: [] },
  { when: "matches a workload without replicas", of: [service({ app: "web" }), deployment(0)], want: [] },
  { when: "is alone", of: [service({ app: "web" })], want: [] },
  { when: "there is none, and no address", of: [service({})], want: [leadsNowhere("has no Endpoints in this input")] },
  { when: "there is none, and Endpoints have the port", of: [service({}), endpoints("")], want: [] },
  {
    when: "there is none, and Endpoints have another port",
    of: [service({}), endpoints("sql")],
    want: [leadsNowhere('no endpoint has its port ""')],
  },
])("a Service that selects none of the pods of the input: $when", ({ of, want }) =>
  expect(warningsOf(...of)).toEqual([...want]),
);

test("places of a node are counted over all workloads: one that runs elsewhere takes none, critical pods come first", () => {
  const named = (name: string, replicas: number, more: object = {}) => {
    const { spec } = deployment(replicas);
    const template = { ...spec.template, spec: { ...spec.template.spec, ...more } };
    return { ...deployment(replicas), metadata: { name, namespace: "kube-system" }, spec: { ...spec, template } };
  };
  const elsewhere = { nodeSelector: { "kubernetes.io/hostname": "other" } };
  const critical = { priorityClassName: "system-node-critical" };
  const told = warningsOf(named("a", 1e9, elsewhere), named("b", 1e9), named("c", 50), named("d", 100, critical));
  expect(told.filter((line) => !line.includes("nodeSelector"))).toEqual([
    "spec.replicas 999999990 of 1000000000 pods are refused: the node takes 110 in all (--max-pods)",
    expect.stringContaining("spec.template.spec "),
  ]);
});

describe("a port of the machine that a Service publishes", () => {
  const published = (name: string, type = "LoadBalancer", nodePort?: number) => {
    const ports = [{ port: 80, targetPort: 8080, ...(nodePort && { nodePort }) }];
    const spec = { type, selector: { app: "web" }, ports };
    return { apiVersion: "v1", kind: "Service", metadata: { name }, spec };
  };
  const held = (holder: string) => [
    `spec.ports it is not published: port TCP/80 of the machine is held by ${holder} "default/one"`,
  ];

  test("is that of another Service", () =>
    expect(warningsOf(published("one"), published("two"))).toEqual(held("Service")));

  test("is the hostPort of a pod", () => {
    const containers = [{ name: "a", image: "b:1", ports: [{ containerPort: 8080, hostPort: 80 }] }];
    const metadata = { name: "one", labels: { app: "web" } };
    const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } };
    expect(warningsOf(published("two"), pod)).toEqual(held("the hostPort of Pod"));
  });

  const ingress = {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "i" },
    spec: { defaultBackend: { service: { name: "one", port: { number: 80 } } } },
  };
  const isHeld = (port: number, holder = "nginx (pid 812)") => `port TCP/${port} of the machine is held by ${holder}`;
  const unserved = (port: number, holder?: string) =>
    `spec it is not served: ${isHeld(port, holder)}: free it, or set --ingress-ports`;
  test.each([
    { of: [published("one")], holds: 80, want: [`spec.ports it is not published: ${isHeld(80)}`] },
    {
      of: [published("one", "NodePort", 30080)],
      holds: 30080,
      want: [`spec.ports it is not published: ${isHeld(30080)}`],
    },
    { of: [published("one", "NodePort")], holds: 80, want: [] },
    { of: [published("one", "ClusterIP")], holds: 80, want: [] },
    { of: [published("one", "ClusterIP"), ingress], holds: 443, want: [unserved(443)] },
    { of: [published("one", "ClusterIP"), ingress], holds: 8080, want: [] },
    { of: [published("one", "ClusterIP"), ingress], holds: 443, isOwn: true, want: [] },
    { of: [published("one"), ingress], holds: 0, want: [unserved(80, 'Service "default/one"')] },
  ])("is that of a process: $of.0.spec.type, $holds", ({ of, holds, isOwn: isServing, want }) => {
    const portHolder = (_: string, port: number, isOwn: boolean) =>
      port === holds && !(isServing && isOwn) ? "nginx (pid 812)" : undefined;
    expect(warningsWhere({ ...RULES, portHolder }, ...of)).toEqual([...want]);
  });
});

test("a malformed network of a pod is told once, at the annotation of the template", () => {
  const annotations = { "kubelet-ts.io/network": "my net!" };
  const web = deployment(1);
  const { template } = web.spec;
  const misplaced = "has no effect here: write it below spec.template.metadata.annotations";
  const format = "my net!: must be the name of a Docker network, or several: front,back";
  const inTemplate = { ...template, metadata: { ...template.metadata, annotations } };
  expect(warningsOf({ ...web, spec: { ...web.spec, template: inTemplate } })).toEqual([
    `spec.template.metadata.annotations[kubelet-ts.io/network] ${format}`,
  ]);
  expect(warningsOf({ ...web, metadata: { name: "web", annotations } } as object)).toEqual([
    `metadata.annotations[kubelet-ts.io/network] ${misplaced}`,
  ]);
});

test("a pod that waits for a refused pod is not told that there is none", () => {
  const metadata = { name: "web", annotations: { "kubelet-ts.io/depends-on": "default/db" } };
  const containers = [{ name: "a", image: "b:1" }];
  const securityContext = { sysctls: [{ name: "net.core.somaxconn", value: "1" }] };
  const db = { ...aPod({ containers, securityContext }), metadata: { name: "db" } };
  expect(warningsOf({ ...aPod({ containers }), metadata } as object, db).join()).not.toContain("there is no pod");
});

test.each([
  ["gone", ['spec.volumeName there is no PersistentVolume "gone" in this input']],
  ["", []],
  ["data", []],
])("a claim of the PersistentVolume %j", (volumeName, want) => {
  const resources = { requests: { storage: "1Gi" } };
  const spec = { accessModes: ["ReadWriteOnce"], resources, volumeName };
  const told = warningsOf({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" }, spec });
  expect(told.map((line) => line.split(":")[0]!)).toEqual(want);
});

describe("an image name that no engine can read", () => {
  test.each([
    ["nginx :1.22", "invalid reference format"],
    ["http://example.com/nginx", "write it without http://, a host without a path too"],
    ["Nginx", "invalid reference format: repository name must be lowercase"],
  ])("%s", (image, why) => {
    const message = `is no image name (found "${image}"): ${why}; its container would wait with InvalidImageName`;
    const containers = [{ name: "a", image }];
    expect(errorsOf(aPod({ containers }))).toEqual([[false, "spec.containers[0].image", message]]);
    expect(errorsOf(aPod({ containers: [{ name: "b", image: "b:1" }], initContainers: containers }))).toEqual([
      [false, "spec.initContainers[0].image", message],
    ]);
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers } };
    const spec = { selector: { matchLabels: labels }, template };
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec };
    expect(errorsOf(deployment)).toEqual([[false, "spec.template.spec.containers[0].image", message]]);
  });

  test.each(["nginx", "localhost:5000/a/b:1", `a@sha256:${"0".repeat(64)}`])("%s is one", (image) => {
    expect(errorsOf(aPod({ containers: [{ name: "a", image }] }))).toEqual([]);
  });
});

const ingress = (name: string, port: object, more: object = {}) => {
  const paths = [{ path: "/", pathType: "Prefix", backend: { service: { name, port } } }];
  const metadata = { name: "web", namespace: "default" };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata,
    spec: { rules: [{ http: { paths } }], ...more },
  };
};
const web = service({ app: "web" });
const HTTP = { number: 80 };
const tls = { tls: [{ secretName: "cert" }] };
const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "cert", namespace: "default" } };
const other = (controller: string) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name: "other" },
  spec: { controller },
});
const AT = "spec.rules[0].http.paths[0].backend";

test.each([
  { when: "has its Service", of: [web, ingress("web", HTTP)], want: [] },
  { when: "is alone", of: [ingress("web", HTTP)], want: [] },
  {
    when: "names no Service",
    of: [web, ingress("wbe", HTTP)],
    want: [`${AT} there is no Service "wbe" in this input`],
  },
  {
    when: "comes with a workload",
    of: [deployment(1), ingress("web", HTTP)],
    want: [`${AT} there is no Service "web"`],
  },
  { when: "names no port", of: [web, ingress("web", { number: 81 })], want: [`${AT} Service "web" has no port 81`] },
  { when: "has its certificate", of: [secret, ingress("web", HTTP, tls)], want: [] },
  { when: "has none", of: [ingress("web", HTTP, tls)], want: ['spec.tls[0] there is no Secret "default/cert"'] },
  { when: "has a class", of: [ingress("web", HTTP, { ingressClassName: "nginx" })], want: [] },
  { when: "has another class", of: [ingress("web", HTTP, { ingressClassName: "x" })], want: ["spec nothing serves"] },
  {
    when: "has a class with our controller",
    of: [other("k8s.io/ingress-nginx"), ingress("web", HTTP, { ingressClassName: "other" })],
    want: [],
  },
])("an Ingress that $when", ({ of, want }) => {
  const warnings = warningsOf(...of);
  expect(warnings).toHaveLength(want.length);
  for (const [index, text] of want.entries()) expect(warnings[index]).toStartWith(text);
});

const EMPTY = "the volume has no file";
const HAS = "an empty directory is mounted; its files are";
test.each([
  ["app.conf", {}, []],
  ["./app.conf", {}, []],
  ["app.cfg", {}, [`${EMPTY} "app.cfg": ${HAS} app.conf`]],
  ["d/x", { items: [{ key: "app.conf", path: "d/x" }] }, []],
  ["d", { items: [{ key: "app.conf", path: "d/x" }] }, []],
  ["app.conf", { items: [{ key: "app.conf", path: "x" }] }, [`${EMPTY} "app.conf": ${HAS} x`]],
])("subPath %s of a ConfigMap with the file app.conf %j", (subPath, more, want) => {
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { "app.conf": "x" } };
  const container = { name: "a", image: "b", volumeMounts: [{ name: "v", mountPath: "/v", subPath }] };
  const volumes = [{ name: "v", configMap: { name: "c", ...more } }];
  const at = "spec.containers[0].volumeMounts[0].subPath";
  expect(warningsOf(map, aPod({ containers: [container], volumes }))).toEqual(want.map((text) => `${at} ${text}`));
});

test.each([
  ["a.yaml", ["NoExecute"]],
  ["https://x/a.yaml", undefined],
])("a pod is shown with the tolerations that its source gives it: %s", (file, want) => {
  const bytes = Buffer.from(JSON.stringify(aPod({ containers: [{ name: "a", image: "b" }] })));
  const [result] = checkInputs([{ file, bytes }], OPTIONS, RULES);
  expect(result?.pod?.spec.tolerations?.map(({ effect }) => effect as string)).toEqual(want!);
});
