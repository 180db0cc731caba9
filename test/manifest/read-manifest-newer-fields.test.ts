import { describe, expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

function read(spec: string) {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n${spec}`;
  const { results } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  return results[0]!;
}
const APP = "  containers:\n  - name: app\n    image: nginx:1\n";
const errorsOf = (spec: string) =>
  read(spec)
    .findings.filter((finding) => finding.severity === "error")
    .map(({ code, field, type }) => `${code} ${field}${type ? ` ${type}` : ""}`);

/** Fields younger than Kubernetes 1.20, on which no recorded verdict exists. */
describe("accepted", () => {
  test.each([
    [
      "a sidecar with probes and hooks",
      `${APP}  initContainers:\n  - name: s\n    image: x:1\n    restartPolicy: Always\n    startupProbe: {tcpSocket: {port: 1}}\n    lifecycle: {preStop: {exec: {command: [a]}}}\n`,
    ],
    ["a gRPC probe", `${APP}    livenessProbe: {grpc: {port: 5000, service: x}, terminationGracePeriodSeconds: 5}\n`],
    ["a sleep hook of zero seconds", `${APP}    lifecycle: {preStop: {sleep: {seconds: 0}}}\n`],
    [
      "restart rules",
      `${APP}    restartPolicy: Never\n    restartPolicyRules:\n    - {action: Restart, exitCodes: {operator: In, values: [42]}}\n`,
    ],
    ["a stop signal", `  os: {name: linux}\n${APP}    lifecycle: {stopSignal: SIGUSR1}\n`],
    ["a resize policy", `${APP}    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]\n`],
    [
      "an image volume",
      `${APP}    volumeMounts: [{name: i, mountPath: /i, readOnly: true, subPath: a}]\n  volumes: [{name: i, image: {reference: "data:1"}}]\n`,
    ],
    [
      "a variable from a file",
      `${APP}    env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: A}}}]\n  volumes: [{name: v}]\n`,
    ],
    ["resources of the pod", `  resources: {limits: {cpu: 2, memory: 1Gi}}\n${APP}`],
    ["AppArmor as a field", `${APP}    securityContext: {appArmorProfile: {type: RuntimeDefault}}\n`],
    ["any printable variable name", `${APP}    env: [{name: "a b:c", value: x}]\n`],
    [
      "recursive read-only mounts",
      `${APP}    volumeMounts: [{name: v, mountPath: /v, readOnly: true, recursiveReadOnly: IfPossible}]\n  volumes: [{name: v}]\n`,
    ],
    ["a search domain with an underscore", `  dnsConfig: {searches: [_tcp.example.com, .]}\n${APP}`],
    ["a sysctl with slashes", `  securityContext: {sysctls: [{name: net/ipv4/ip_forward, value: "1"}]}\n${APP}`],
    ["hostnameOverride", `  hostnameOverride: a.b\n${APP}`],
  ])("%s", (_, spec) => {
    expect(errorsOf(spec)).toEqual([]);
    expect(read(spec).ok).toBe(true);
  });
});

describe("refused", () => {
  test.each([
    ["scheduling gates", `  schedulingGates: [{name: a}]\n${APP}`, ["invalid spec.nodeName FieldValueForbidden"]],
    [
      "a sleep longer than the grace period",
      `  terminationGracePeriodSeconds: 5\n${APP}    lifecycle: {preStop: {sleep: {seconds: 6}}}\n`,
      ["invalid spec.containers[0].lifecycle.preStop.sleep FieldValueInvalid"],
    ],
    [
      "a stop signal without os",
      `${APP}    lifecycle: {stopSignal: SIGUSR1}\n`,
      ["invalid spec.containers[0].lifecycle.stopSignal FieldValueForbidden"],
    ],
    [
      "a signal that does not exist",
      `  os: {name: linux}\n${APP}    lifecycle: {stopSignal: SIGFOO}\n`,
      ["invalid spec.containers[0].lifecycle.stopSignal FieldValueNotSupported"],
    ],
    [
      "a grace period on a readiness probe",
      `${APP}    readinessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 5}\n`,
      ["invalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds FieldValueInvalid"],
    ],
    [
      "rules without a policy",
      `${APP}    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]\n`,
      ["invalid spec.containers[0].restartPolicy FieldValueRequired"],
    ],
    [
      "a rule with a wrong operator",
      `${APP}    restartPolicy: Never\n    restartPolicyRules: [{action: Restart, exitCodes: {operator: Eq, values: [1]}}]\n`,
      ["invalid spec.containers[0].restartPolicyRules[0].exitCodes.operator FieldValueNotSupported"],
    ],
    [
      "user namespaces with the host's network",
      `  hostUsers: false\n  hostNetwork: true\n${APP}`,
      ["invalid spec.hostNetwork FieldValueForbidden"],
    ],
    [
      "recursive read-only without read-only",
      `${APP}    volumeMounts: [{name: v, mountPath: /v, recursiveReadOnly: Enabled}]\n  volumes: [{name: v}]\n`,
      ["invalid spec.containers[0].volumeMounts.recursiveReadOnly FieldValueForbidden"],
    ],
    [
      "a variable from a file of another kind of volume",
      `${APP}    env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: A}}}]\n  volumes: [{name: v, hostPath: {path: /x}}]\n`,
      ["invalid spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName FieldValueInvalid"],
    ],
    [
      "an IPv4-mapped nameserver",
      `  dnsConfig: {nameservers: ["::ffff:1.2.3.4"]}\n${APP}`,
      ["invalid spec.dnsConfig.nameservers[0] FieldValueInvalid"],
    ],
    [
      "a net sysctl with the host's network",
      `  hostNetwork: true\n  securityContext: {sysctls: [{name: net.core.somaxconn, value: "1"}]}\n${APP}`,
      ["invalid spec.securityContext.sysctls[0].name FieldValueInvalid"],
    ],
    [
      "a pod limit below what a container may use",
      `  resources: {limits: {cpu: 1}}\n${APP}    resources: {limits: {cpu: 2}, requests: {cpu: 1}}\n`,
      ["invalid spec.resources.containers[0][cpu].limits FieldValueInvalid"],
    ],
    [
      "probes on a plain init container",
      `${APP}  initContainers: [{name: i, image: "x:1", livenessProbe: {tcpSocket: {port: 1}}}]\n`,
      ["invalid spec.initContainers[0].livenessProbe FieldValueForbidden"],
    ],
    [
      "an image volume without a reference",
      `${APP}  volumes: [{name: i, image: {}}]\n`,
      ["invalid spec.volumes[0].image.reference FieldValueRequired"],
    ],
    [
      "an AppArmor profile that says two things",
      `${APP}    securityContext: {appArmorProfile: {type: Localhost}}\n`,
      ["invalid spec.containers[0].securityContext.appArmorProfile.localhostProfile FieldValueRequired"],
    ],
    [
      "ephemeral containers",
      `${APP}  ephemeralContainers: [{name: d, image: "x:1"}]\n`,
      ["invalid spec.ephemeralContainers FieldValueForbidden"],
    ],
  ])("%s", (_, spec, want) => expect(errorsOf(spec)).toEqual(want));
});

test("defaults of newer fields", () => {
  const { pod } = read(
    `  resources: {limits: {memory: 1Gi}}\n  terminationGracePeriodSeconds: -1\n${APP}    resources: {requests: {cpu: 100m}}\n    readinessProbe: {grpc: {port: 1}}\n  volumes: [{name: i, image: {reference: data}}]\n`,
  );
  expect(pod?.spec.terminationGracePeriodSeconds).toBe(1);
  expect(pod?.spec.resources).toMatchObject({ limits: { memory: "1Gi" }, requests: { cpu: "100m", memory: "1Gi" } });
  expect(pod?.spec.containers[0]?.readinessProbe?.grpc).toEqual({ port: 1, service: "" });
  expect(pod?.spec.volumes?.[0]?.image).toEqual({ reference: "data", pullPolicy: "Always" });
});
