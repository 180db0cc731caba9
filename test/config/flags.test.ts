import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { environmentSettings, parseCommandLine, variableOf } from "../../src/config/flags.ts";
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
    ["--max-pods 5", "maxPods", 5],
    ["--max-pods=5", "maxPods", 5],
    ["--max_pods=5", "maxPods", 5],
    ["--pod-max-pids -1", "podPidsLimit", -1],
    ["--oom-score-adj=-998", "oomScoreAdj", -998],
    ["--v=4", "verbosity", 4],
    ["--v 4", "verbosity", 4],
    ["-v 4", "verbosity", 4],
    ["-v=4", "verbosity", 4],
    ["-v4", "verbosity", 4],
    ["-ojson", "output", "json"],
    ["-o json", "output", "json"],
    ["--runonce", "runOnce", true],
    ["--runonce=false", "runOnce", false],
    ["--runonce=T", "runOnce", true],
    ["--runonce --v=2", "runOnce", true],
    ["--sync-frequency=1m30s", "syncFrequencyMs", 90_000],
    ["--v=1 --v=2", "verbosity", 2],
    ["--pod-manifest-path=a,b --pod-manifest-path=c", "podManifestPaths", ["a,b", "c"]],
    ["--cluster-dns=10.0.0.1,10.0.0.2 --cluster-dns=::1", "clusterDns", ["10.0.0.1", "10.0.0.2", "::1"]],
    ["--feature-gates=A=true --feature-gates=A=false,B=true", "featureGates", { A: false, B: true }],
    ["--container-log-max-size=1Mi", "containerLogMaxSizeBytes", 1_048_576],
    ["--eviction-hard=memory.available<1Gi", "evictionHard", [{ signal: "memory.available", quantity: 1_073_741_824 }]],
    ["--eviction-hard=nodefs.available<7.5%", "evictionHard", [{ signal: "nodefs.available", percentage: 7.5 }]],
    [
      "--register-with-taints=a=b:NoSchedule,c:NoExecute",
      "nodeTaints",
      ["a b NoSchedule", "c  NoExecute"]
        .map((it) => it.split(" "))
        .map(([key, value, effect]) => ({ key, value, effect })),
    ],
    [
      "--manifest-url-header=a:hello,b:again,c:world --manifest-url-header b:+beautiful,+day",
      "manifestUrlHeaders",
      ["a:hello", "b:again", "c:world", "b:beautiful, day"]
        .map((it) => it.split(":"))
        .map(([name, value]) => ({ name, value })),
    ],
  ])("%s", (line, option, want) => {
    const argv = line.split(" ").map((word) => word.replaceAll("+", " "));
    expect(parseCommandLine(argv).errors).toEqual([]);
    expect(read(argv, option)).toEqual(want);
  });

  test("manifests, - and everything after -- are arguments", () => {
    const { positionals, errors } = parseCommandLine("a.yaml --runonce - --v=1 http://h/ -- --max-pods".split(" "));
    expect({ positionals, errors }).toEqual({ positionals: ["a.yaml", "-", "http://h/", "--max-pods"], errors: [] });
  });

  test("--help and --version are requests, unless they are false", () => {
    expect(parseCommandLine(["--help"]).request).toBe("help");
    expect(parseCommandLine(["-h"]).request).toBe("help");
    expect(parseCommandLine(["--version"]).request).toBe("version");
    expect(parseCommandLine(["--version=false"]).request).toBeUndefined();
  });
});

/** A command line and its one error. */
const WRONG = `
--manfest-url=x => --manfest-url: no such flag; did you mean --manifest-url?
--pod-manifests-path x => --pod-manifests-path: no such flag; did you mean --pod-manifest-path?
--file-check-freqency=1s => --file-check-freqency: no such flag; did you mean --file-check-frequency?
--pod-manifest= => --pod-manifest: no such flag; did you mean --pod-manifest-path?
-max-pods=1 => -max-pods: no such flag; did you mean --max-pods?
--xyzzy => --xyzzy: no such flag (see kubelet-ts --help)
--max-pods => --max-pods: needs a value
--max-pods --v=2 => --max-pods: needs a value
-v => -v: needs a value, as in -v 2; the version is shown by: kubelet-ts version
--max-pods -- a.yaml => --max-pods: needs a value
-hv4 => -hv4: no such flag (see kubelet-ts --help)
--max-pods=many => --max-pods: must be a whole number from 0 to 2147483647, got "many"
--max-pods=1.5 => --max-pods: must be a whole number from 0 to 2147483647, got "1.5"
--read-only-port=65536 => --read-only-port: must be a whole number from 0 to 65535 (0 = off), got "65536"
--runonce=maybe => --runonce: must be true or false, got "maybe"
--runonce true => --runonce true: write --runonce=true
--sync-frequency=20 => --sync-frequency: must be a duration such as "20s" or "1m30s", got "20"
--sync-frequency=0s => --sync-frequency: must be at least 1ms, got "0s"
--crash-loop-back-off-max=10m => --crash-loop-back-off-max: must be from 1s to 5m0s, got "10m"
--log-format=xml => --log-format: must be one of text, json, journald, got "xml"
--node-ip=here => --node-ip: must be an IP address, got "here"
--ingress-image= => --ingress-image: must be the name of an image, as registry.example.com/team/app:1.0 (invalid reference format), got ""
--ingress-image=Nginx => --ingress-image: must be the name of an image, as registry.example.com/team/app:1.0 (invalid reference format: repository name must be lowercase), got "Nginx"
--cluster-dns-image=https://r/dns => --cluster-dns-image: must be the name of an image, as registry.example.com/team/app:1.0 (invalid reference format), got "https://r/dns"
--pod-infra-container-image=pause@1 => --pod-infra-container-image: must be the name of an image, as registry.example.com/team/app:1.0 (invalid reference format), got "pause@1"
--eviction-hard=memory<1Gi => --eviction-hard: memory: not one of memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available
--eviction-hard=memory.available=1Gi => --eviction-hard: must be signal<amount,…, got "memory.available=1Gi"
--system-reserved=gpu=1 => --system-reserved: gpu: not one of cpu, memory, ephemeral-storage, pid
--manifest-url=ftp://h/ => --manifest-url: must be an http:, https: or unix: URL, got "ftp://h/"
--api-servers=http://m:8080 => --api-servers: kubelets take the address of an API server from a file: use --kubeconfig
--container-runtime=rkt => --container-runtime: kubelet-ts runs pods on Docker only: remove the flag
--container-runtime=remote => --container-runtime: kubelet-ts runs pods on Docker only: remove the flag
--cloud-config=/c => --cloud-config: cloud providers are not part of kubelet-ts; use --cloud-provider=external
--cloud-provider=openstack => --cloud-provider: must be one of "", external, got "openstack"`;

describe("errors name what to write instead", () => {
  test.each(
    WRONG.trim()
      .split("\n")
      .map((row) => row.split(" => ")),
  )("%s", (line = "", want) => {
    expect(parseCommandLine(line.split(" ")).errors).toEqual([want]);
  });

  test("every error is reported", () => {
    expect(parseCommandLine(["--max-pods=x", "--nonsense", "--v=99"]).errors).toHaveLength(3);
  });

  test("a bad header value is not shown", () => {
    const { errors } = parseCommandLine(["--manifest-url-header=Authorization: s3c\u0000ret"]);
    expect(errors).toEqual(["--manifest-url-header: the value of Authorization contains a control character"]);
  });
});

/** A command line and its one warning, or none. */
const ACCEPTED = `
--network-plugin-mtu=1400 => --network-plugin-mtu has no effect: the network of pods is Docker's, or that of CNI plugins with their own configuration
--require-kubeconfig => --require-kubeconfig has no effect: it is obsolete: Kubernetes does not use it any more
--cpu-manager-policy=none
--api-servers= --container-runtime=docker --network-plugin=bridge --kubeconfig=
--logging-format=json => --logging-format is deprecated: use --log-format
--max_pods=1 --max_pods=2 => --max_pods: write --max-pods`;

test.each(
  ACCEPTED.trim()
    .split("\n")
    .map((row) => row.split(" => ")),
)("%s is accepted", (line = "", ...warnings) => {
  expect(parseCommandLine(line.split(" "))).toMatchObject({ warnings, errors: [] });
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

test("variables name configuration files; a flag replaces its variable", async () => {
  const file = join(tempDir(), "config.yaml");
  writeFileSync(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 3\n");
  const variables = { KUBELET_TS_CONFIG: file, KUBELET_TS_CONFIG_DIR: "/drop-ins" };
  expect((await resolve([], { KUBELET_TS_CONFIG: file })).options.maxPods).toBe(3);
  expect((await resolve([], variables)).configPaths).toEqual([file, "/drop-ins"]);
  expect((await resolve(["--config=/other"], variables)).configPaths).toEqual(["/other", "/drop-ins"]);
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
