import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
const POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";

function directoryWith(files: Record<string, string>): string {
  const dir = tempDir();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, ".."), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return dir;
}

test("nothing said: all defaults", async () => {
  const { options, origins, warnings, errors } = await resolveOptions([], "/", "show");
  // A port that refuses every client stays closed.
  expect(options).toEqual({ ...DEFAULT_KUBELET_OPTIONS, port: 0 });
  expect(new Set(Object.values(origins))).toEqual(new Set(["default"]));
  expect([...warnings, ...errors]).toEqual([]);
});

test.each([
  { flags: ["--network-plugin=kubenet"], want: [expect.stringContaining('"kubenet" (--network-plugin) is not known')] },
  { flags: ["--network-plugin=kubenet", "--network-plugin=noop"], want: [] },
  { flags: ["--network-plugin=kubenet", "--network-plugin=cni"], want: [] },
])("$flags: only the last network plugin is checked", async ({ flags, want }) => {
  expect((await resolveOptions(flags, "/", "show")).errors).toEqual([...want]);
});

test.each([
  { flags: ["--authorization-mode=Webhook"], errors: [/Webhook \(--authorization-mode\) denies every request/] },
  { flags: ["--authentication-token-webhook"], errors: [/bearer tokens .* cannot be reviewed without --kubeconfig/] },
  { flags: ["--authorization-mode=Webhook", "--authentication-token-webhook", "--kubeconfig=/k"], errors: [] },
])("$flags: an API server has to be there to be asked", async ({ flags, errors }) => {
  const resolved = await resolveOptions(flags, "/", "show");
  expect(resolved.errors).toEqual(errors.map((error) => expect.stringMatching(error)));
});

test("a KubeletConfiguration that says nothing of it asks the API server, as upstream", async () => {
  const dir = directoryWith({ "k.yaml": HEAD });
  const standalone = await resolveOptions(["--config=k.yaml"], dir, "show");
  expect(standalone.options).toMatchObject({ authorizationMode: "AlwaysAllow", authenticationTokenWebhook: false });
  const { options } = await resolveOptions(["--config=k.yaml", "--kubeconfig=/k"], dir, "show");
  expect(options).toMatchObject({ authorizationMode: "Webhook", authenticationTokenWebhook: true, port: 10250 });
});

test("directories of network plugins are separated by commas and absolute", async () => {
  const { options } = await resolveOptions(["--cni-bin-dir=/opt/cni/bin,bin", "--root-dir=/r"], "/work", "show");
  expect(options.cniBinDirs).toEqual(["/opt/cni/bin", "/work/bin"]);
  expect(options.cniCacheDir).toBe("/r/cni");
});

test.each([
  { flags: ["--client-ca-file=/ca.crt"], want: 10250 },
  { flags: ["--anonymous-auth"], want: 10250 },
  { flags: ["--port=10250"], want: 10250 },
  { flags: ["--client-ca-file=/ca.crt", "--port=0"], want: 0 },
  { flags: ["--client-ca-file=/ca.crt", "--enable-server=false"], want: 0 },
  { flags: ["--anonymous-auth=false"], want: 0 },
])("the authenticated port with $flags is $want", async ({ flags, want }) => {
  expect((await resolveOptions(flags, "/", "show")).options.port).toBe(want);
});

test.each([
  { flags: ["--anonymous-auth"], want: "127.0.0.1" },
  { flags: ["--anonymous-auth", "--address=192.0.2.1"], want: "192.0.2.1" },
  { flags: ["--anonymous-auth", "--authorization-mode=AlwaysDeny"], want: "0.0.0.0" },
  { flags: ["--client-ca-file=/ca.crt"], want: "0.0.0.0" },
])("the address of the authenticated port with $flags is $want", async ({ flags, want }) => {
  expect((await resolveOptions(flags, "/", "show")).options.address).toBe(want);
});

test.each([
  { place: "web.yaml", want: "/work/web.yaml" },
  { place: "-", want: "-" },
  { place: "https://host/pods", want: "https://host/pods" },
  { place: "HTTP://host/pods", want: "HTTP://host/pods" },
  { place: "unix:/run/x", want: "unix:/run/x" },
])("the argument $place is the place $want", async ({ place, want }) => {
  expect((await resolveOptions([place], "/work", "show")).positionals).toEqual([want]);
});

test("defaults < file < drop-ins by name < flags, with the origin of each", async () => {
  const dir = directoryWith({
    "k.yaml": `${HEAD}maxPods: 1\nsyncFrequency: 1s\nfileCheckFrequency: 1s\nhttpCheckFrequency: 1s\n`,
    "d/10.conf": `${HEAD}syncFrequency: 2s\nfileCheckFrequency: 2s\nhttpCheckFrequency: 2s\n`,
    "d/20.conf": `${HEAD}fileCheckFrequency: 3s\nhttpCheckFrequency: 3s\n`,
    "d/sub/30.conf": `${HEAD}podsPerCore: 30\n`,
    "d/99.yaml": `${HEAD}maxPods: 99\n`,
  });
  const { options, origins, errors } = await resolveOptions(
    ["--config=k.yaml", "--config-dir", "d", "--http-check-frequency=4s"],
    dir,
  );
  expect(errors).toEqual([]);
  expect([
    options.maxPods,
    options.syncFrequencyMs,
    options.fileCheckFrequencyMs,
    options.httpCheckFrequencyMs,
  ]).toEqual([1, 2000, 3000, 4000]);
  expect(options.podsPerCore).toBe(30);
  expect(origins).toMatchObject({
    maxPods: `${dir}/k.yaml:3`,
    syncFrequencyMs: `${dir}/d/10.conf:3`,
    fileCheckFrequencyMs: `${dir}/d/20.conf:3`,
    httpCheckFrequencyMs: "--http-check-frequency",
    rootDir: "default",
  });
});

test("lists of a later file replace, maps add up; flags replace both but feature gates", async () => {
  const dir = directoryWith({
    "k.yaml": `${HEAD}clusterDNS: [10.0.0.1]\nsystemReserved: {cpu: 1}\nkubeReserved: {cpu: 1}\nfeatureGates: {SidecarContainers: true, NodeSwap: true}\n`,
    "d/1.conf": `${HEAD}clusterDNS: [10.0.0.2]\nsystemReserved: {memory: 1Gi}\n`,
  });
  const { options } = await resolveOptions(
    ["--config=k.yaml", "--config-dir=d", "--kube-reserved=memory=2Gi", "--feature-gates=NodeSwap=false"],
    dir,
  );
  expect(options.clusterDns).toEqual(["10.0.0.2"]);
  expect(options.systemReserved).toEqual({ cpu: "1", memory: "1Gi" });
  expect(options.kubeReserved).toEqual({ memory: "2Gi" });
  expect(options.featureGates).toEqual({ SidecarContainers: true, NodeSwap: false });
});

describe("--config is reported apart by what it points at", () => {
  test("a directory and a manifest are manifests, as in old kubelets", async () => {
    const dir = directoryWith({ "m/a.yaml": POD, "pod.yaml": POD });
    for (const path of ["m", "pod.yaml"]) {
      const { options, warnings, errors, origins } = await resolveOptions(
        ["--config", path, "--pod-manifest-path=x"],
        dir,
      );
      expect(options.podManifestPaths).toEqual([join(dir, "x"), join(dir, path)]);
      expect(warnings).toEqual([
        `--config ${path} holds manifests, not a KubeletConfiguration: write --pod-manifest-path=${path}`,
      ]);
      expect(errors).toEqual([]);
      expect(options.readOnlyPort).toBe(10255);
      expect(origins.podManifestPaths).toBe("--pod-manifest-path");
    }
  });

  test("what is neither, missing or broken is an error", async () => {
    const dir = directoryWith({ "notes.txt": "hello", "broken.yaml": `${HEAD}a: [` });
    expect((await resolveOptions(["--config=notes.txt"], dir)).errors).toEqual([
      `--config: "${dir}/notes.txt" has no kind: neither a KubeletConfiguration nor a manifest`,
    ]);
    expect((await resolveOptions(["--config=nowhere"], dir)).errors).toEqual([
      `--config: "${dir}/nowhere" does not exist`,
    ]);
    expect((await resolveOptions(["--config-dir=nowhere"], dir)).errors).toEqual([
      `--config-dir: "${dir}/nowhere" does not exist`,
    ]);
    expect((await resolveOptions(["--config=broken.yaml"], dir)).errors[0]).toMatch(
      /broken\.yaml:\d+:\d+: a value was expected/,
    );
  });
});

test("paths are absolute: those of flags from the working directory, those of a file from its own", async () => {
  const dir = directoryWith({
    "etc/k.yaml": `${HEAD}staticPodPath: manifests\nresolvConf: ""\nkubeletTs: {imagesDir: ../images}\n`,
  });
  const { options, positionals } = await resolveOptions(
    ["--config=etc/k.yaml", "--root-dir", "state", "a.yaml", "-", "http://h/x", "--runonce"],
    dir,
  );
  expect(options.podManifestPaths).toEqual([`${dir}/etc/manifests`]);
  expect(options.imagesDir).toBe(`${dir}/images`);
  expect(options.resolvConf).toBe("");
  expect(options.rootDir).toBe(`${dir}/state`);
  expect(options.certDir).toBe(`${dir}/state/pki`);
  expect(positionals).toEqual([`${dir}/a.yaml`, "-", "http://h/x"]);
});

describe("defaults that follow from others", () => {
  test("a configuration file turns the read-only port off unless it names it", async () => {
    const dir = directoryWith({ "off.yaml": HEAD, "on.yaml": `${HEAD}readOnlyPort: 10255\n` });
    expect((await resolveOptions(["--config=off.yaml"], dir)).options.readOnlyPort).toBe(0);
    expect((await resolveOptions(["--config=on.yaml"], dir)).options.readOnlyPort).toBe(10255);
    expect((await resolveOptions(["--config=off.yaml", "--read-only-port=1"], dir)).options.readOnlyPort).toBe(1);
  });

  test.each([
    { when: "neither is set", yaml: "", flags: [], want: 300_000 },
    { when: "a file sets the other", yaml: "nodeStatusUpdateFrequency: 20s\n", flags: [], want: 20_000 },
    {
      when: "a flag overrides that of the file",
      yaml: "nodeStatusUpdateFrequency: 20s\n",
      flags: ["30s"],
      want: 20_000,
    },
    { when: "a flag alone sets the other", yaml: "", flags: ["30s"], want: 300_000 },
    {
      when: "kubeadm writes zeros",
      yaml: "nodeStatusUpdateFrequency: 0s\nnodeStatusReportFrequency: 0s\n",
      flags: [],
      want: 300_000,
    },
    {
      when: "a file sets both",
      yaml: "nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m\n",
      flags: [],
      want: 60_000,
    },
  ])("nodeStatusReportFrequency when $when", async ({ yaml, flags, want }) => {
    const dir = directoryWith({ "k.yaml": HEAD + yaml });
    const argv = ["--config=k.yaml", ...flags.map((value) => `--node-status-update-frequency=${value}`)];
    const { options, errors } = await resolveOptions(argv, dir);
    expect(errors).toEqual([]);
    expect(options.nodeStatusReportFrequencyMs).toBe(want);
  });

  test("--read-only-port=0 is off", async () => {
    expect((await resolveOptions(["--read-only-port=0"], "/")).options.readOnlyPort).toBe(0);
  });

  test("the read-only port is on loopback, unless an address is given", async () => {
    expect((await resolveOptions([], "/")).options.readOnlyAddress).toBe("127.0.0.1");
    expect((await resolveOptions(["--address=10.0.0.1"], "/")).options.readOnlyAddress).toBe("10.0.0.1");
    expect(
      (await resolveOptions(["--address=10.0.0.1", "--read-only-bind-address=::1"], "/")).options.readOnlyAddress,
    ).toBe("::1");
  });

  test("thresholds: given ones replace all, unless merged; 0% and 100% switch off", async () => {
    const dir = directoryWith({
      "k.yaml": `${HEAD}mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi, nodefs.available: "0%"}\n`,
    });
    expect((await resolveOptions(["--eviction-hard=memory.available<1Gi"], "/")).options.evictionHard).toEqual([
      { signal: "memory.available", quantity: 1024 ** 3 },
    ]);
    expect((await resolveOptions(["--eviction-hard=memory.available<100%"], "/")).options.evictionHard).toEqual([]);
    expect((await resolveOptions(["--config=k.yaml"], dir)).options.evictionHard).toEqual([
      { signal: "memory.available", quantity: 1024 ** 3 },
      { signal: "nodefs.inodesFree", percentage: 5 },
      { signal: "imagefs.available", percentage: 15 },
    ]);
  });

  test("the node name is lower case", async () => {
    expect((await resolveOptions(["--hostname-override=Node1.Example"], "/")).options.hostnameOverride).toBe(
      "node1.example",
    );
  });
});

describe("what does not go together", () => {
  test.each([
    {
      argv: ["--image-gc-high-threshold=50"],
      error: "the low image GC threshold 80 must be below the high one 50 (--image-gc-high-threshold)",
    },
    {
      argv: ["--image-maximum-gc-age=1m"],
      error: "the maximum age of images (--image-maximum-gc-age) must be above the minimum",
    },
    {
      argv: ["--max-parallel-image-pulls=3"],
      error: "3 parallel pulls (--max-parallel-image-pulls) need --serialize-image-pulls=false",
    },
    {
      argv: ["--eviction-soft=memory.available<1Gi"],
      error:
        "the soft eviction threshold of memory.available (--eviction-soft) needs --eviction-soft-grace-period=memory.available=…",
    },
    { argv: ["--tls-cert-file=/a"], error: "--tls-cert-file requires --tls-private-key-file" },
    {
      argv: ["--manifest-url-client-key-file=/a"],
      error: "--manifest-url-client-key-file requires --manifest-url-client-cert-file",
    },
    {
      argv: ["--hostname-override=a_b"],
      error: '"a_b" (--hostname-override) is not a DNS name: lower-case letters, digits, - and .',
    },
    {
      argv: ["--runonce", "--enable-server"],
      error: "--runonce serves no ports: remove enableServer (--enable-server)",
    },
    { argv: ["-"], error: "standard input (-) is read once: add --runonce" },
    { argv: ["--healthz-port=10255"], error: "--read-only-port and --healthz-port are both 10255" },
  ])("$argv", async ({ argv, error }) => {
    expect((await resolveOptions(argv, "/")).errors).toEqual([error]);
  }); // prettier-ignore

  test.each([
    { argv: ["-o", "json"], warning: "--output has no effect without --runonce" },
    { argv: ["--timeout=1m"], warning: "--timeout has no effect without --runonce" },
    {
      argv: ["--logtostderr=false"],
      warning: "logging to the terminal (--logtostderr) stays on: there is no --log-dir",
    },
    { argv: ["--manifest-url-header=a:b"], warning: "--manifest-url-header has no effect without --manifest-url" },
    {
      argv: ["--feature-gates=SidecarContainer=true"],
      warning: "feature gate SidecarContainer is unknown; did you mean SidecarContainers?",
    },
    {
      argv: ["--feature-gates=DynamicKubeletConfig=true"],
      warning: "feature gate DynamicKubeletConfig has no effect: there is no such feature here",
    },
    {
      argv: ["--feature-gates=SidecarContainers=false"],
      warning: "feature gate SidecarContainers cannot be switched off",
    },
  ])("$argv warns", async ({ argv, warning }) => {
    expect(await resolveOptions(argv.length > 0 ? [...argv, "m"] : [], "/")).toMatchObject({
      warnings: [warning],
      errors: [],
    });
  }); // prettier-ignore
});

describe("unknown fields of a configuration file", () => {
  const dir = directoryWith({ "k.yaml": `${HEAD}maxPodz: 3\n` });
  const message = `${dir}/k.yaml:3:1: maxPodz: no such field; did you mean maxPods?`;

  test.each([
    { argv: [], errors: [message], warnings: [] },
    { argv: ["--validate=warn"], errors: [], warnings: [message] },
    { argv: ["--validate=ignore"], errors: [], warnings: [] },
  ])("with $argv", async ({ argv, errors, warnings }) => {
    const resolved = await resolveOptions(["--config=k.yaml", ...argv], dir);
    expect({ errors: resolved.errors, warnings: resolved.warnings }).toEqual({
      errors: [...errors],
      warnings: [...warnings],
    });
  });
});

test("gates of features that are always on warn only when they are switched off", async () => {
  const gates = "InPlacePodVerticalScaling=true,GracefulNodeShutdown=true,SidecarContainers=false";
  const { warnings } = await resolveOptions([`--feature-gates=${gates}`], "/");
  expect(warnings).toEqual(["feature gate SidecarContainers cannot be switched off"]);
});

test("gates that clusters give to all their programs do not warn", async () => {
  const gates = "RotateKubeletServerCertificate=true,RuntimeClass=true,EndpointSlice=true,TTLAfterFinished=true";
  expect((await resolveOptions([`--feature-gates=${gates}`], "/")).warnings).toEqual([]);
});
