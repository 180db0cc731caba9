import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { type ResolvedOptions, resolveOptions } from "../../src/config/resolve-options.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
const POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
const GI = 1024 ** 3;

/** A command line; `k` is what k.yaml holds below its head, and in `argv` as in texts DIR is the directory. */
interface Case {
  argv: readonly string[];
  k?: string;
  files?: Readonly<Record<string, string>>;
  options?: object;
  origins?: object;
  errors?: readonly unknown[];
  warnings?: readonly string[];
  positionals?: readonly string[];
}

async function resolve({ argv, k, files }: Case): Promise<ResolvedOptions> {
  const dir = tempDir();
  const all = { ...files, ...(k !== undefined && { "k.yaml": HEAD + k }) };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(join(dir, name, ".."), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  const words = argv.map((word) => word.replace("DIR", dir));
  const resolved = await resolveOptions(k === undefined ? words : ["--config=k.yaml", ...words], dir, "run", {});
  return JSON.parse(JSON.stringify(resolved).replaceAll(dir, "DIR")) as ResolvedOptions;
}

/** The members of `given` that `wanted` has. */
const pick = (given: object, wanted: object = {}) =>
  Object.fromEntries(Object.entries(given).filter(([name]) => name in wanted));

/** Only what a row names is compared; without `errors` there are none. */
const check = (rows: readonly Case[]) =>
  test.each(rows.map((row) => ({ row, title: [...row.argv, row.k ?? ""].join(" ").replaceAll("\n", " ") })))(
    "$title",
    async ({ row: { argv, k, files, options = {}, origins = {}, errors = [], ...lists } }) => {
      const found = await resolve({ argv, ...(k !== undefined && { k }), ...(files && { files }) });
      const shown = { ...pick(found, lists), errors: found.errors, options: pick(found.options, options) };
      expect({ ...shown, origins: pick(found.origins, origins) } as object).toEqual({
        ...lists,
        errors: [...errors],
        options,
        origins,
      });
    },
  );

test("without flags and files every option has its default", async () => {
  const { options, origins, warnings, errors } = await resolveOptions([], "/", "show");
  // A port that refuses every client stays closed.
  expect(options).toEqual({ ...DEFAULT_KUBELET_OPTIONS, port: 0 });
  expect(new Set(Object.values(origins))).toEqual(new Set(["default"]));
  expect([...warnings, ...errors]).toEqual([]);
});

describe("defaults < file < drop-ins by name < flags, with the origin of each", () => {
  check([
    {
      argv: ["--config-dir", "d", "--http-check-frequency=4s"],
      k: "maxPods: 1\nsyncFrequency: 1s\nfileCheckFrequency: 1s\nhttpCheckFrequency: 1s\n",
      files: {
        "d/10.conf": `${HEAD}syncFrequency: 2s\nfileCheckFrequency: 2s\nhttpCheckFrequency: 2s\n`,
        "d/20.conf": `${HEAD}fileCheckFrequency: 3s\nhttpCheckFrequency: 3s\n`,
        "d/sub/30.conf": `${HEAD}podsPerCore: 30\n`,
        "d/99.yaml": `${HEAD}maxPods: 99\n`,
      },
      options: {
        maxPods: 1,
        syncFrequencyMs: 2000,
        fileCheckFrequencyMs: 3000,
        httpCheckFrequencyMs: 4000,
        podsPerCore: 30,
      },
      origins: {
        maxPods: "DIR/k.yaml:3",
        syncFrequencyMs: "DIR/d/10.conf:3",
        fileCheckFrequencyMs: "DIR/d/20.conf:3",
        httpCheckFrequencyMs: "--http-check-frequency",
        rootDir: "default",
      },
    },
    // Lists of a later file replace, maps add up; flags replace both but feature gates.
    {
      argv: ["--config-dir=d", "--kube-reserved=memory=2Gi", "--feature-gates=NodeSwap=false"],
      k: "clusterDNS: [10.0.0.1]\nsystemReserved: {cpu: 1}\nkubeReserved: {cpu: 1}\nfeatureGates: {SidecarContainers: true, NodeSwap: true}\n",
      files: { "d/1.conf": `${HEAD}clusterDNS: [10.0.0.2]\nsystemReserved: {memory: 1Gi}\n` },
      options: {
        clusterDns: ["10.0.0.2"],
        systemReserved: { cpu: "1", memory: "1Gi" },
        kubeReserved: { memory: "2Gi" },
      },
    },
    {
      argv: ["--feature-gates=NodeSwap=false"],
      k: "featureGates: {NodeSwap: true}\n",
      options: { featureGates: { NodeSwap: false } },
    },
  ]);
});

describe("paths are absolute: those of flags from the working directory, those of a file from its own", () => {
  check([
    {
      argv: ["--config=etc/k.yaml", "--root-dir", "state", "a.yaml", "-", "http://h/x", "--runonce"],
      files: { "etc/k.yaml": `${HEAD}staticPodPath: manifests\nresolvConf: ""\nkubeletTs: {imagesDir: ../images}\n` },
      options: {
        podManifestPaths: ["DIR/etc/manifests"],
        imagesDir: "DIR/images",
        resolvConf: "",
        rootDir: "DIR/state",
        certDir: "DIR/state/pki",
      },
      positionals: ["DIR/a.yaml", "-", "http://h/x"],
    },
    { argv: ["HTTP://host/pods", "unix:/run/x"], positionals: ["HTTP://host/pods", "unix:/run/x"] },
    {
      argv: ["--cni-bin-dir=/opt/cni/bin,bin", "--root-dir=/r"],
      options: { cniBinDirs: ["/opt/cni/bin", "DIR/bin"], cniCacheDir: "/r/cni" },
    },
  ]);
});

describe("--config may name a file, a directory or a manifest", () => {
  check([
    ...["m", "pod.yaml"].map((path) => ({
      argv: ["--config", path, "--pod-manifest-path=x"],
      files: { "m/a.yaml": POD, "pod.yaml": POD },
      options: { podManifestPaths: ["DIR/x", `DIR/${path}`], readOnlyPort: 10255 },
      origins: { podManifestPaths: "--pod-manifest-path" },
      warnings: [`--config ${path} holds manifests, not a KubeletConfiguration: write --pod-manifest-path=${path}`],
    })),
    {
      argv: ["--config=notes.txt"],
      files: { "notes.txt": "hello" },
      errors: ['--config: "DIR/notes.txt" has no kind: neither a KubeletConfiguration nor a manifest'],
    },
    { argv: ["--config=nowhere"], errors: ['--config: "DIR/nowhere" does not exist'] },
    { argv: ["--config-dir=nowhere"], errors: ['--config-dir: "DIR/nowhere" does not exist'] },
    { argv: [], k: "a: [", errors: [expect.stringMatching(/k\.yaml:\d+:\d+: a value was expected/)] },
    // A file without end is read to the limit only.
    { argv: ["--config=/dev/zero"], errors: ['--config: "/dev/zero" cannot be read: it has 10485760 bytes or more'] },
  ]);
});

describe("defaults that follow from others", () => {
  const report = (argv: string[], k: string, nodeStatusReportFrequencyMs: number): Case => ({
    argv,
    k,
    options: { nodeStatusReportFrequencyMs },
  });
  const hard = (evictionHard: readonly object[], argv: string[], k?: string): Case => ({
    argv,
    ...(k !== undefined && { k }),
    options: { evictionHard },
  });
  check([
    // A configuration file turns the read-only port off unless it names it; its address is loopback unless one is given.
    { argv: [], k: "", options: { readOnlyPort: 0 } },
    { argv: [], k: "readOnlyPort: 10255\n", options: { readOnlyPort: 10255 } },
    { argv: ["--read-only-port=1"], k: "", options: { readOnlyPort: 1 } },
    { argv: ["--read-only-port=0"], options: { readOnlyPort: 0 } },
    { argv: ["m"], options: { readOnlyAddress: "127.0.0.1" } },
    { argv: ["--address=10.0.0.1"], options: { readOnlyAddress: "10.0.0.1" } },
    { argv: ["--address=10.0.0.1", "--read-only-bind-address=::1"], options: { readOnlyAddress: "::1" } },
    // The authenticated port is open where clients have a way in.
    { argv: ["--client-ca-file=/ca.crt"], options: { port: 10250, address: "0.0.0.0" } },
    { argv: ["--anonymous-auth"], options: { port: 10250, address: "127.0.0.1" } },
    { argv: ["--port=10250"], options: { port: 10250 } },
    { argv: ["--client-ca-file=/ca.crt", "--port=0"], options: { port: 0 } },
    { argv: ["--client-ca-file=/ca.crt", "--enable-server=false"], options: { port: 0 } },
    { argv: ["--anonymous-auth=false"], options: { port: 0 } },
    { argv: ["--anonymous-auth", "--address=192.0.2.1"], options: { address: "192.0.2.1" } },
    { argv: ["--anonymous-auth", "--authorization-mode=AlwaysDeny"], options: { address: "0.0.0.0" } },
    // A KubeletConfiguration that says nothing of it asks the API server, as upstream.
    { argv: [], k: "", options: { authorizationMode: "AlwaysAllow", authenticationTokenWebhook: false } },
    {
      argv: ["--kubeconfig=/k"],
      k: "",
      options: { authorizationMode: "Webhook", authenticationTokenWebhook: true, port: 10250 },
    },
    { argv: ["--hostname-override=Node1.Example"], options: { hostnameOverride: "node1.example" } },
    report([], "", 300_000),
    report([], "nodeStatusUpdateFrequency: 20s\n", 20_000),
    report(["--node-status-update-frequency=30s"], "nodeStatusUpdateFrequency: 20s\n", 20_000),
    report(["--node-status-update-frequency=30s"], "", 300_000),
    report([], "nodeStatusUpdateFrequency: 0s\nnodeStatusReportFrequency: 0s\n", 300_000),
    report([], "nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m\n", 60_000),
  ]);

  describe("thresholds: given ones replace all, unless merged; 0% and 100% switch off", () => {
    const memory = { signal: "memory.available", quantity: GI };
    check([
      hard([memory], ["--eviction-hard=memory.available<1Gi"]),
      hard([], ["--eviction-hard=memory.available<100%"]),
      hard(
        [memory, { signal: "nodefs.inodesFree", percentage: 5 }, { signal: "imagefs.available", percentage: 15 }],
        [],
        'mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi, nodefs.available: "0%"}\n',
      ),
    ]);
  });
});

/** Rows `flags => message`; without a message there is none. */
const lines = (rows: string, toCase: (message: string[]) => Omit<Case, "argv">, ...positionals: string[]): Case[] =>
  rows
    .trim()
    .split("\n")
    .map((row) => row.split(" => "))
    .map(([flags = "", ...message]) => ({ argv: [...flags.split(" "), ...positionals], ...toCase(message) }));

const WRONG = `
--image-gc-high-threshold=50 => the low image GC threshold 80 must be below the high one 50 (--image-gc-high-threshold)
--image-maximum-gc-age=1m => the maximum age of images (--image-maximum-gc-age) must be above the minimum
--max-parallel-image-pulls=3 => 3 parallel pulls (--max-parallel-image-pulls) need --serialize-image-pulls=false
--eviction-soft=memory.available<1Gi => the soft eviction threshold of memory.available (--eviction-soft) needs --eviction-soft-grace-period=memory.available=…
--tls-cert-file=/a => --tls-cert-file requires --tls-private-key-file
--manifest-url-client-key-file=/a => --manifest-url-client-key-file requires --manifest-url-client-cert-file
--hostname-override=a_b => "a_b" (--hostname-override) is not a DNS name: lower-case letters, digits, - and .
--runonce --enable-server => --runonce serves no ports: remove enableServer (--enable-server)
- => standard input (-) is read once: add --runonce
--healthz-port=10255 => --read-only-port and --healthz-port are both 10255
--authorization-mode=Webhook => the authorization mode Webhook (--authorization-mode) denies every request without --kubeconfig; use AlwaysAllow (with --client-ca-file) or AlwaysDeny
--authentication-token-webhook => bearer tokens (--authentication-token-webhook) cannot be reviewed without --kubeconfig; use --client-ca-file
--authorization-mode=Webhook --authentication-token-webhook --kubeconfig=/k
--network-plugin=kubenet => the network plugin "kubenet" (--network-plugin) is not known: use cni, or none for Docker's networks
--network-plugin=kubenet --network-plugin=noop
--network-plugin=kubenet --network-plugin=cni`;

describe("options that exclude each other", () => check(lines(WRONG, (errors) => ({ errors }))));

const WARNED = `
-o json => --output has no effect without --runonce
--timeout=1m => --timeout has no effect without --runonce
--logtostderr=false => logging to the terminal (--logtostderr) stays on: there is no --log-dir
--manifest-url-header=a:b => --manifest-url-header has no effect without --manifest-url
--manifest-url-header=a:b unix:/run/x
--feature-gates=SidecarContainer=true => feature gate SidecarContainer is unknown; did you mean SidecarContainers?
--feature-gates=DynamicKubeletConfig=true => feature gate DynamicKubeletConfig has no effect: there is no such feature here
--feature-gates=InPlacePodVerticalScaling=true,GracefulNodeShutdown=true,SidecarContainers=false => feature gate SidecarContainers cannot be switched off
--feature-gates=RotateKubeletServerCertificate=true,RuntimeClass=true,EndpointSlice=true,TTLAfterFinished=true`;

describe("warnings", () => check(lines(WARNED, (warnings) => ({ warnings }), "m")));

describe("unknown fields of a configuration file", () => {
  const k = "maxPodz: 3\n";
  const message = "DIR/k.yaml:3:1: maxPodz: no such field; did you mean maxPods?";
  check([
    { argv: [], k, errors: [message], warnings: [] },
    { argv: ["--validate=warn"], k, warnings: [message] },
    { argv: ["--validate=ignore"], k, warnings: [] },
  ]);
});

test("a configuration may come from a pipe, and one in --config-dir is refused", async () => {
  const dir = tempDir();
  mkdirSync(join(dir, "conf.d"));
  const pipes = ["k.yaml", "conf.d/k.conf"].map((name) => join(dir, name));
  for (const pipe of pipes) expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const writer = Bun.spawn(["sh", "-c", 'printf "$1" > "$2"', "sh", `${HEAD}maxPods: 7\\n`, pipes[0]!]);
  const words = ["--config=k.yaml", "--config-dir=conf.d"];
  const { options, errors } = await resolveOptions(words, dir, "run", {});
  expect({ maxPods: options.maxPods, errors: errors.map(String) }).toEqual({
    maxPods: 7,
    errors: [expect.stringContaining("it is a pipe")],
  });
  await writer.exited;
});
