import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { detectKind, parseConfigFile } from "../../src/config/config-file.ts";
import { ROW_BY_FIELD } from "../../src/config/option-table.ts";

const fixture = (name: string) =>
  readFileSync(join(import.meta.dir, "../fixtures/kubelet-configuration", name), "utf8");
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
const parse = (body: string) => parseConfigFile(HEAD + body, "k.yaml");
const set = (text: string) =>
  Object.fromEntries(parseConfigFile(text, "k.yaml").settings.map(({ row, value }) => [row.option, value]));

test.each([
  // YAML 1.1, as the kubelet reads it; test/manifest/yaml has the rules.
  { body: "maxPods: 0o10\n", want: { maxPods: 8 } },
  { body: "podLogsDir: 12:30\n", want: { podLogsDir: "12:30" } },
  { body: "maxPods: 3\n<<: {podsPerCore: 2, maxPods: 9}\n", want: { maxPods: 9, podsPerCore: 2 } },
])("scalars and anchors: $body", ({ body, want }) => expect(set(HEAD + body)).toEqual(want));

test.each([
  ["resolvConf: on\n", "k.yaml:3:13: resolvConf: must be a string, got true"],
  [`tracing: ${"[".repeat(9000)}${"]".repeat(9000)}\n`, "k.yaml:1:1: more than 100 levels of nesting"],
])("%p is an error", (body, error) => expect(parse(body).errors).toEqual([error]));

describe("real files parse", () => {
  const CLUSTER_ONLY = /webhook|Webhook|rotateCert/;
  const GIB = 1024 ** 3;
  test.each<[file: string, warnings: string[], settings: object]>([
    [
      "kind",
      [
        "k.yaml:20:1: containerRuntimeEndpoint has no effect: kubelet-ts runs pods on Docker only: use --docker-endpoint",
      ],
      { cgroupRoot: "/kubelet", failSwapOn: false, imageGcHighThresholdPercent: 100 },
    ],
    [
      "documentation",
      ["k.yaml:41:1: cpuManagerPolicy has no effect: kubelet-ts has no such manager; containers run on all CPUs"],
      {
        address: "192.168.0.8",
        port: 20250,
        evictionSoft: [{ signal: "memory.available", quantity: 1.5 * GIB }],
        evictionSoftGracePeriodMs: { "memory.available": 90_000 },
        systemReserved: { cpu: "500m", memory: "1Gi", "ephemeral-storage": "1Gi" },
        kubeReserved: { cpu: "1", memory: "2Gi", "ephemeral-storage": "1Gi" },
        shutdownGracePeriodMs: 30_000,
        nodeTaints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }],
        manifestUrlHeaders: [{ name: "Metadata-Flavor", value: "Google" }],
        memorySwap: "LimitedSwap",
        crashLoopBackOffMaxMs: 100_000,
        allowedUnsafeSysctls: ["kernel.msg*", "net.core.somaxconn"],
        logFormat: "json",
        verbosity: 3,
      },
    ],
    // As /configz of a kubelet shows them: of nothing is warned.
    ["defaults-1.20", [], {}],
  ])("%s", (file, expected, settings) => {
    const { errors, warnings } = parseConfigFile(fixture(`${file}.yaml`), "k.yaml");
    expect(errors).toEqual([]);
    expect(file === "kind" ? warnings.filter((line) => !CLUSTER_ONLY.test(line)) : warnings).toEqual(expected);
    expect(set(fixture(`${file}.yaml`))).toMatchObject(settings);
  });

  test("kubeadm's: only what is set counts, zeros are defaults", () => {
    expect(parseConfigFile(fixture("kubeadm.yaml"), "k.yaml")).toMatchObject({ errors: [], warnings: [] });
    expect(set(fixture("kubeadm.yaml"))).toEqual({
      anonymousAuth: false,
      clientCaFile: "/etc/kubernetes/pki/ca.crt",
      authorizationMode: "Webhook",
      authenticationTokenWebhook: true,
      cgroupDriver: "systemd",
      clusterDns: ["10.96.0.10"],
      clusterDomain: "cluster.local",
      healthzBindAddress: "127.0.0.1",
      healthzPort: 10248,
      resolvConf: "/run/systemd/resolve/resolv.conf",
      rotateCertificates: true,
      podManifestPaths: ["/etc/kubernetes/manifests"],
    });
  });

  test("JSON, and a document of kubeadm before it", () => {
    const json = `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","maxPods":7}`;
    expect(set(json)).toEqual({ maxPods: 7 });
    const before = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n---\n";
    expect(set(`${before}${HEAD}maxPods: 7\n`)).toEqual({ maxPods: 7 });
  });
});

/** Fields below the head of k.yaml, in which ¶ is a line end, and the warning (~) or error (!) about them. */
const WRONG = `
maxPodz: 3 ~ k.yaml:3:1: maxPodz: no such field; did you mean maxPods?
podManifestPath: /x ~ k.yaml:3:1: podManifestPath: no such field; did you mean staticPodPath?
pod-manifest-path: /x ~ k.yaml:3:1: pod-manifest-path: no such field; did you mean staticPodPath?
authentication:¶  x509:¶    clientCaFile: /x ~ k.yaml:5:5: authentication.x509.clientCaFile: no such field; did you mean authentication.x509.clientCAFile?
xyzzy: 1 ~ k.yaml:3:1: xyzzy: no such field
kubeletTs:¶  imageDir: /x ~ k.yaml:4:3: kubeletTs.imageDir: no such field; did you mean kubeletTs.imagesDir?
maxPods: many ! k.yaml:3:10: maxPods: must be a whole number from 0 to 2147483647, got "many"
maxPods: '5' ! k.yaml:3:10: maxPods: must be a whole number from 0 to 2147483647, got "5"
syncFrequency: 60 ! k.yaml:3:16: syncFrequency: must be a string, got 60
maxPods: 1¶maxPods: 2 ! k.yaml:4:1: maxPods: occurs twice
authentication: yes ! k.yaml:3:17: authentication: must be a map
evictionHard:¶  memory.free: 1Gi ! k.yaml:4:3: evictionHard: memory.free: not one of memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available`;

describe("errors and warnings have line and column", () => {
  test.each(WRONG.trim().split("\n"))("%s", (row) => {
    const [, body = "", kind, message = ""] = /^(.*) ([~!]) (.*)$/.exec(row) ?? [];
    const { warnings, unknown, errors } = parse(`${body.replaceAll("¶", "\n")}\n`);
    expect([...warnings, ...unknown]).toEqual(kind === "~" ? [message] : []);
    expect(errors).toEqual(kind === "!" ? [message] : []);
  });

  test("a value that is cut off", () => {
    expect(parse("a: [\n").errors).toEqual([expect.stringMatching(/^k\.yaml:4:1: a value was expected/)]);
  });

  test.each([
    { text: "", error: "k.yaml: has no KubeletConfiguration" },
    { text: "kind: Pod\n", error: 'k.yaml:1:1: kind must be KubeletConfiguration, found "Pod"' },
    { text: "- a\n", error: "k.yaml:1:1: must be a map with kind: KubeletConfiguration" },
    {
      text: "kind: KubeletConfiguration\n",
      error: "k.yaml:1:1: apiVersion must be kubelet.config.k8s.io/v1beta1, found null",
    },
    { text: `${HEAD}---\n${HEAD}`, error: "k.yaml:4:1: a second KubeletConfiguration in one file" },
  ])("$text", ({ text, error }) => {
    expect(parseConfigFile(text, "k.yaml").errors).toEqual([error]);
  });
});

test.each([
  [`${HEAD}maxPods: 1`, "configuration"],
  ['{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}', "configuration"],
  ["apiVersion: v1\nkind: Pod\n", "manifest"],
  ['{"apiVersion":"v1","kind":"PodList"}', "manifest"],
  [`${HEAD}broken: [`, "configuration"],
  ["hello", "unknown"],
  ["", "unknown"],
] as const)("%p is a %s", (text, want) => {
  expect(detectKind(text)).toBe(want);
});

/** Values of every shape, one a line. */
const SHAPES = `{}
{a: 1}
{a: {b: [c, {d: null}]}}
[]
[a]
[{a: {b: 1}}, null, [1]]
0
{memory.available: 1e999, imagefs.available: 17, cpu: 1e999, memory: {a: 1}}
17
-1.5
1e999
null
true
""
text`.split("\n");

/** One field of a KubeletConfiguration, of any depth. */
function configurationWith(field: string, value: string): string {
  const [leaf = "", ...outer] = field.split(".").reverse();
  const body = outer.reduce((inner, name) => `${name}: {${inner}}`, `${leaf}: ${value}`);
  return `${HEAD}${body}\n`;
}

const fields = [...ROW_BY_FIELD.keys()].flatMap((field) => [field, `${field}.below`, field.split(".", 1)[0]!]);
test.each([...new Set(fields)])(
  "a value of any shape is read, warned of or refused, and never thrown at: %s",
  (field) => {
    for (const shape of SHAPES) {
      const { settings, warnings, errors, unknown } = parseConfigFile(configurationWith(field, shape), "k.yaml");
      for (const message of [...warnings, ...errors, ...unknown]) expect(message).toStartWith("k.yaml:3:");
      // `config` and /configz show each value.
      for (const { row, value } of settings) JSON.stringify([row.kind.toField(value), row.kind.toText(value)]);
    }
  },
);

test("a map below a field without effect is one warning", () => {
  const { warnings, errors } = parseConfigFile(configurationWith("tracing", "{samplingRatePerMillion: 10}"), "k.yaml");
  expect(errors).toEqual([]);
  expect(warnings).toEqual([
    expect.stringMatching(/^k\.yaml:3:1: tracing has no effect: kubelet-ts records no traces$/),
  ]);
});
