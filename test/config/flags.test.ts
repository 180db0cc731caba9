import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { environmentSettings, findConfigPaths, parseCommandLine, variableOf } from "../../src/config/flags.ts";
import { OPTION_TABLE } from "../../src/config/option-table.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";
import { tempDirs } from "../support/temp-dir.ts";

const read = (argv: readonly string[], option: string): unknown =>
  parseCommandLine(argv).settings.find(({ row }) => row.option === option)?.value;

describe("the last value of a repeated flag counts", () => {
  test.each([
    { argv: ["--api-servers=http://m:8080", "--api-servers="], errors: [] },
    { argv: ["--api-servers=", "--api-servers=http://m:8080"], errors: [expect.stringContaining("--api-servers: ")] },
    { argv: ["--container-runtime=rkt", "--container-runtime", "docker"], errors: [] },
  ])("$argv", ({ argv, errors }) => expect(parseCommandLine(argv).errors).toEqual([...errors]));

  test("a flag without effect warns once, for its last value", () => {
    const { warnings } = parseCommandLine(["--cpu-manager-policy=static", "--cpu-manager-policy=none"]);
    expect(warnings).toEqual([]);
  });
});

describe("how flags are written", () => {
  test.each([
    { argv: ["--max-pods", "5"], option: "maxPods", want: 5 },
    { argv: ["--max-pods=5"], option: "maxPods", want: 5 },
    { argv: ["--max_pods=5"], option: "maxPods", want: 5 },
    { argv: ["--pod-max-pids", "-1"], option: "podPidsLimit", want: -1 },
    { argv: ["--oom-score-adj=-998"], option: "oomScoreAdj", want: -998 },
    { argv: ["--v=4"], option: "verbosity", want: 4 },
    { argv: ["--v", "4"], option: "verbosity", want: 4 },
    { argv: ["-v", "4"], option: "verbosity", want: 4 },
    { argv: ["-v=4"], option: "verbosity", want: 4 },
    { argv: ["-v4"], option: "verbosity", want: 4 },
    { argv: ["-ojson"], option: "output", want: "json" },
    { argv: ["-o", "json"], option: "output", want: "json" },
    { argv: ["--runonce"], option: "runOnce", want: true },
    { argv: ["--runonce=false"], option: "runOnce", want: false },
    { argv: ["--runonce=T"], option: "runOnce", want: true },
    { argv: ["--runonce", "--v=2"], option: "runOnce", want: true },
    { argv: ["--sync-frequency=1m30s"], option: "syncFrequencyMs", want: 90_000 },
    { argv: ["--v=1", "--v=2"], option: "verbosity", want: 2 },
    { argv: ["--pod-manifest-path=a,b", "--pod-manifest-path=c"], option: "podManifestPaths", want: ["a,b", "c"] },
    {
      argv: ["--cluster-dns=10.0.0.1,10.0.0.2", "--cluster-dns=::1"],
      option: "clusterDns",
      want: ["10.0.0.1", "10.0.0.2", "::1"],
    },
    {
      argv: ["--feature-gates=A=true", "--feature-gates=A=false,B=true"],
      option: "featureGates",
      want: { A: false, B: true },
    },
    { argv: ["--container-log-max-size=1Mi"], option: "containerLogMaxSizeBytes", want: 1_048_576 },
    {
      argv: ["--eviction-hard=memory.available<1Gi,nodefs.available<7.5%"],
      option: "evictionHard",
      want: [
        { signal: "memory.available", quantity: 1_073_741_824 },
        { signal: "nodefs.available", percentage: 7.5 },
      ],
    },
    {
      argv: ["--register-with-taints=a=b:NoSchedule,c:NoExecute"],
      option: "nodeTaints",
      want: [
        { key: "a", value: "b", effect: "NoSchedule" },
        { key: "c", value: "", effect: "NoExecute" },
      ],
    },
    {
      argv: ["--manifest-url-header=a:hello,b:again,c:world", "--manifest-url-header", "b: beautiful, day"],
      option: "manifestUrlHeaders",
      want: [
        { name: "a", value: "hello" },
        { name: "b", value: "again" },
        { name: "c", value: "world" },
        { name: "b", value: "beautiful, day" },
      ],
    },
  ])("$argv", ({ argv, option, want }) => {
    expect(parseCommandLine(argv).errors).toEqual([]);
    expect(read(argv, option)).toEqual(want);
  }); // prettier-ignore

  test("manifests, - and everything after -- are arguments", () => {
    const { positionals, errors } = parseCommandLine([
      "a.yaml",
      "--runonce",
      "-",
      "--v=1",
      "http://h/",
      "--",
      "--max-pods",
    ]);
    expect({ positionals, errors }).toEqual({ positionals: ["a.yaml", "-", "http://h/", "--max-pods"], errors: [] });
  });

  test("--help and --version are requests, unless they are false", () => {
    expect(parseCommandLine(["--help"]).request).toBe("help");
    expect(parseCommandLine(["-h"]).request).toBe("help");
    expect(parseCommandLine(["--version"]).request).toBe("version");
    expect(parseCommandLine(["--version=false"]).request).toBeUndefined();
  });
});

describe("what is wrong is said with the way out", () => {
  test.each([
    { argv: ["--manfest-url=x"], want: "--manfest-url: no such flag; did you mean --manifest-url?" },
    {
      argv: ["--pod-manifests-path", "x"],
      want: "--pod-manifests-path: no such flag; did you mean --pod-manifest-path?",
    },
    {
      argv: ["--file-check-freqency=1s"],
      want: "--file-check-freqency: no such flag; did you mean --file-check-frequency?",
    },
    { argv: ["-max-pods=1"], want: "-max-pods: no such flag; did you mean --max-pods?" },
    { argv: ["--xyzzy"], want: "--xyzzy: no such flag (see kubelet-ts --help)" },
    { argv: ["--max-pods"], want: "--max-pods: needs a value" },
    { argv: ["--max-pods", "--v=2"], want: "--max-pods: needs a value" },
    { argv: ["--max-pods=many"], want: '--max-pods: must be a whole number from 0 to 2147483647, got "many"' },
    { argv: ["--max-pods=1.5"], want: '--max-pods: must be a whole number from 0 to 2147483647, got "1.5"' },
    {
      argv: ["--read-only-port=65536"],
      want: '--read-only-port: must be a whole number from 0 to 65535 (0 = off), got "65536"',
    },
    { argv: ["--runonce=maybe"], want: '--runonce: must be true or false, got "maybe"' },
    { argv: ["--runonce", "true"], want: "--runonce true: write --runonce=true" },
    { argv: ["--sync-frequency=20"], want: '--sync-frequency: must be a duration such as "20s" or "1m30s", got "20"' },
    { argv: ["--sync-frequency=0s"], want: '--sync-frequency: must be at least 1ms, got "0s"' },
    { argv: ["--crash-loop-back-off-max=10m"], want: '--crash-loop-back-off-max: must be from 1s to 5m0s, got "10m"' },
    { argv: ["--log-format=xml"], want: '--log-format: must be one of text, json, journald, got "xml"' },
    { argv: ["--node-ip=here"], want: '--node-ip: must be an IP address, got "here"' },
    {
      argv: ["--eviction-hard=memory<1Gi"],
      want: "--eviction-hard: memory: not one of memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
    },
    {
      argv: ["--eviction-hard=memory.available=1Gi"],
      want: '--eviction-hard: must be signal<amount,…, got "memory.available=1Gi"',
    },
    {
      argv: ["--system-reserved=gpu=1"],
      want: "--system-reserved: gpu: not one of cpu, memory, ephemeral-storage, pid",
    },
    {
      argv: ["--manifest-url=ftp://h/"],
      want: '--manifest-url: must be an http:, https: or unix: URL, got "ftp://h/"',
    },
    {
      argv: ["--api-servers=http://m:8080"],
      want: "--api-servers: kubelets take the address of an API server from a file: use --kubeconfig",
    },
    {
      argv: ["--container-runtime=rkt"],
      want: "--container-runtime: kubelet-ts runs pods on Docker only; rkt no longer exists",
    },
    {
      argv: ["--cloud-provider=openstack"],
      want: expect.stringContaining('--cloud-provider: must be one of "", external'),
    },
  ])("$argv", ({ argv, want }) => {
    expect(parseCommandLine(argv).errors).toEqual([want]);
  }); // prettier-ignore

  test("every mistake is said, not only the first", () => {
    expect(parseCommandLine(["--max-pods=x", "--nonsense", "--v=99"]).errors).toHaveLength(3);
  });

  test("a bad header value is not shown", () => {
    const { errors } = parseCommandLine(["--manifest-url-header=Authorization: s3c\u0000ret"]);
    expect(errors).toEqual(["--manifest-url-header: the value of Authorization contains a control character"]);
  });
});

describe("what is taken with a warning, once", () => {
  test.each([
    {
      argv: ["--network-plugin-mtu=1400"],
      want: [
        "--network-plugin-mtu has no effect: the network of pods is Docker's, or that of CNI plugins with their own configuration",
      ],
    },
    {
      argv: ["--require-kubeconfig"],
      want: ["--require-kubeconfig has no effect: it is obsolete: Kubernetes does not use it any more"],
    },
    { argv: ["--cpu-manager-policy=none"], want: [] },
    { argv: ["--api-servers=", "--container-runtime=docker", "--network-plugin=bridge", "--kubeconfig="], want: [] },
    { argv: ["--logging-format=json"], want: ["--logging-format is deprecated: use --log-format"] },
    { argv: ["--max_pods=1", "--max_pods=2"], want: ["--max_pods: write --max-pods"] },
  ])("$argv", ({ argv, want }) => {
    expect(parseCommandLine(argv)).toMatchObject({ warnings: want, errors: [] });
  }); // prettier-ignore
});

const tempDir = tempDirs();
const resolve = (argv: string[], environment: Record<string, string>) =>
  resolveOptions(argv, "/work", "run", environment);

test("every flag is a variable; a flag wins over it", async () => {
  expect(variableOf("max-pods")).toBe("KUBELET_TS_MAX_PODS");
  const { options, origins, errors } = await resolve(["--max-pods=7"], {
    KUBELET_TS_MAX_PODS: "5",
    KUBELET_TS_READ_ONLY_PORT: "0",
    KUBELET_TS_POD_MANIFEST_PATH: "pods",
    KUBELET_TS_NODE_LABELS: "",
  });
  expect(errors).toEqual([]);
  expect([options.maxPods, options.readOnlyPort, options.podManifestPaths]).toEqual([7, 0, ["/work/pods"]]);
  expect([origins.maxPods, origins.readOnlyPort]).toEqual(["--max-pods", "KUBELET_TS_READ_ONLY_PORT"]);
});

test.each(OPTION_TABLE.flatMap((row) => (row.is === "option" && row.flag ? [row.flag] : [])))(
  "--%s is read from its variable",
  (flag) => {
    const variable = variableOf(flag);
    const { settings, errors, warnings } = environmentSettings({ [variable]: "true" });
    expect(warnings.filter((warning) => warning.includes("names no flag"))).toEqual([]);
    expect([...settings.map(({ origin }) => origin), ...errors].join()).toContain(variable);
  },
);

test("files of settings are named by variables, too; a flag replaces its variable", async () => {
  const file = join(tempDir(), "config.yaml");
  writeFileSync(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 3\n");
  const variables = { KUBELET_TS_CONFIG: file, KUBELET_TS_CONFIG_DIR: "/drop-ins" };
  expect((await resolve([], { KUBELET_TS_CONFIG: file })).options.maxPods).toBe(3);
  expect(findConfigPaths([], variables)).toEqual({ configPaths: [file], configDir: "/drop-ins" });
  expect(findConfigPaths(["--config=/other"], variables)).toEqual({ configPaths: ["/other"], configDir: "/drop-ins" });
});

test("a bad value and a misspelt name are reported by the variable's name", () => {
  const { errors, warnings } = environmentSettings({
    KUBELET_TS_MAX_PODS: "many",
    KUBELET_TS_MAX_POD: "3",
    KUBELET_TS_TEST_RUN: "x",
    PATH: "/bin",
  });
  expect(errors.join()).toContain("KUBELET_TS_MAX_PODS");
  expect(warnings).toEqual(["KUBELET_TS_MAX_POD in the environment names no flag; did you mean KUBELET_TS_MAX_PODS?"]);
});
