import { expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

function read(spec: string) {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n${spec}`;
  const { results } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  return results[0]!;
}
/** A spec with lines of its own, and a container with fields of its own. */
const app = (container: string, spec = "") =>
  `${spec === "" ? "" : `  ${spec}\n`}  containers: [{name: app, image: "nginx:1"${container === "" ? "" : `, ${container}`}}]\n`;
const errorsOf = (spec: string) =>
  read(spec)
    .findings.filter((finding) => finding.severity === "error")
    .map(({ code, field, type }) => `${code} ${field}${type ? ` ${type}` : ""}`);

const RULE = (operator: string) =>
  `restartPolicyRules: [{action: Restart, exitCodes: {operator: ${operator}, values: [42]}}]`;
const FILE_VARIABLE = "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: A}}}]";
const SYSCTL = (name: string) => `securityContext: {sysctls: [{name: ${name}, value: "1"}]}`;
const SIDECAR =
  "restartPolicy: Always, startupProbe: {tcpSocket: {port: 1}}, lifecycle: {preStop: {exec: {command: [a]}}}";
const READ_ONLY = (more: string) => `volumeMounts: [{name: v, mountPath: /v, ${more}}]`;

/** Fields younger than Kubernetes 1.20, on which no recorded verdict exists. */
test.each([
  app("", `initContainers: [{name: s, image: "x:1", ${SIDECAR}}]`),
  app("livenessProbe: {grpc: {port: 5000, service: x}, terminationGracePeriodSeconds: 5}"),
  app("lifecycle: {preStop: {sleep: {seconds: 0}}}"),
  app(`restartPolicy: Never, ${RULE("In")}`),
  app("lifecycle: {stopSignal: SIGUSR1}", "os: {name: linux}"),
  app("resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]"),
  app(READ_ONLY("readOnly: true, subPath: a"), 'volumes: [{name: v, image: {reference: "data:1"}}]'),
  app(FILE_VARIABLE, "volumes: [{name: v}]"),
  app("", "resources: {limits: {cpu: 2, memory: 1Gi}}"),
  app("securityContext: {appArmorProfile: {type: RuntimeDefault}}"),
  app('env: [{name: "a b:c", value: x}]'),
  app(READ_ONLY("readOnly: true, recursiveReadOnly: IfPossible"), "volumes: [{name: v}]"),
  app("", "dnsConfig: {searches: [_tcp.example.com, .]}"),
  app("", SYSCTL("net/ipv4/ip_forward")),
  app("", "hostnameOverride: a.b"),
  app("", "volumes: [{name: v, emptyDir: {mode: 01777}}]"),
  app("", 'tolerations: [{key: a, operator: Gt, value: "900", effect: NoSchedule}]'),
  app("", "securityContext: {supplementalGroupsPolicy: Strict, runAsGroup: 3000}"),
])("accepted: %s", (spec) => {
  expect(errorsOf(spec)).toEqual([]);
  expect(read(spec).ok).toBe(true);
});

const LONG_SLEEP = app("lifecycle: {preStop: {sleep: {seconds: 6}}}", "terminationGracePeriodSeconds: 5");
const READINESS = app("readinessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 5}");
const OTHER_VOLUME = app(FILE_VARIABLE, "volumes: [{name: v, hostPath: {path: /x}}]");
const ON_HOST_NETWORK = app("", `hostNetwork: true\n  ${SYSCTL("net.core.somaxconn")}`);
const OVER_POD_LIMIT = app("resources: {limits: {cpu: 2}, requests: {cpu: 1}}", "resources: {limits: {cpu: 1}}");
const PROBED_INIT = app("", 'initContainers: [{name: i, image: "x:1", livenessProbe: {tcpSocket: {port: 1}}}]');
const APP_ARMOR = app("securityContext: {appArmorProfile: {type: Localhost}}");
const NOT_READ_ONLY = app(READ_ONLY("recursiveReadOnly: Enabled"), "volumes: [{name: v}]");

test.each([
  [app("", "schedulingGates: [{name: a}]"), "nodeName FieldValueForbidden"],
  [LONG_SLEEP, "containers[0].lifecycle.preStop.sleep FieldValueInvalid"],
  [app("lifecycle: {stopSignal: SIGUSR1}"), "containers[0].lifecycle.stopSignal FieldValueForbidden"],
  [app("lifecycle: {stopSignal: X}", "os: {name: linux}"), "containers[0].lifecycle.stopSignal FieldValueNotSupported"],
  [READINESS, "containers[0].readinessProbe.terminationGracePeriodSeconds FieldValueInvalid"],
  [app(RULE("In")), "containers[0].restartPolicy FieldValueRequired"],
  [
    app(`restartPolicy: Never, ${RULE("Eq")}`),
    "containers[0].restartPolicyRules[0].exitCodes.operator FieldValueNotSupported",
  ],
  [app("", "hostUsers: false\n  hostNetwork: true"), "hostNetwork FieldValueForbidden"],
  [app("", "volumes: [{name: v, emptyDir: {mode: 02777}}]"), "volumes[0].emptyDir.mode FieldValueInvalid"],
  [app("", "tolerations: [{key: a, operator: Lt, value: b}]"), "tolerations[0].operator FieldValueInvalid"],
  [NOT_READ_ONLY, "containers[0].volumeMounts.recursiveReadOnly FieldValueForbidden"],
  [OTHER_VOLUME, "containers[0].env[0].valueFrom.fileKeyRef.volumeName FieldValueInvalid"],
  [app("", 'dnsConfig: {nameservers: ["::ffff:1.2.3.4"]}'), "dnsConfig.nameservers[0] FieldValueInvalid"],
  [ON_HOST_NETWORK, "securityContext.sysctls[0].name FieldValueInvalid"],
  [OVER_POD_LIMIT, "resources.containers[0][cpu].limits FieldValueInvalid"],
  [PROBED_INIT, "initContainers[0].livenessProbe FieldValueForbidden"],
  [app("", "volumes: [{name: i, image: {}}]"), "volumes[0].image.reference FieldValueRequired"],
  [APP_ARMOR, "containers[0].securityContext.appArmorProfile.localhostProfile FieldValueRequired"],
  [app("", 'ephemeralContainers: [{name: d, image: "x:1"}]'), "ephemeralContainers FieldValueForbidden"],
])("refused: %s", (spec, want) => expect(errorsOf(spec)).toEqual([`invalid spec.${want}`]));

test("defaults of newer fields", () => {
  const spec = "resources: {limits: {memory: 1Gi}}\n  terminationGracePeriodSeconds: -1";
  const volumes = "  volumes: [{name: i, image: {reference: data}}]\n";
  const { pod } = read(app("resources: {requests: {cpu: 100m}}, readinessProbe: {grpc: {port: 1}}", spec) + volumes);
  expect(pod?.spec.terminationGracePeriodSeconds).toBe(1);
  expect(pod?.spec.resources).toMatchObject({ limits: { memory: "1Gi" }, requests: { cpu: "100m", memory: "1Gi" } });
  expect(pod?.spec.containers[0]?.readinessProbe?.grpc).toEqual({ port: 1, service: "" });
  expect(pod?.spec.volumes?.[0]?.image).toEqual({ reference: "data", pullPolicy: "Always" });
});
