import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { renderFlagsDoc } from "../../scripts/generate-flags-doc.ts";
import { renderFlagsHelp } from "../../src/cli/help.ts";
import { defaultDirectories } from "../../src/config/default-directories.ts";
import {
  compareOptions,
  DEFAULT_KUBELET_OPTIONS,
  OPTION_TABLE,
  type OptionRow,
  ROW_BY_FIELD,
  SHOWN_ROWS,
} from "../../src/config/option-table.ts";

const optionRows = OPTION_TABLE.filter((row): row is OptionRow => row.is === "option");

test("one row declares an option; further names of it are deprecated", () => {
  const declared = optionRows.filter((row) => "default" in row).map(({ option }) => option);
  expect(declared.filter((name, index) => declared.indexOf(name) !== index)).toEqual([]);
  const aliases = optionRows.filter((row) => !("default" in row));
  expect(aliases.filter(({ deprecated, option }) => !deprecated || !declared.includes(option))).toEqual([]);
});

test("flags and fields are unique, and no field is inside another", () => {
  const flags = OPTION_TABLE.flatMap(({ flag }) => (flag === undefined ? [] : [flag]));
  const fields = OPTION_TABLE.flatMap(({ field }) => (field === undefined ? [] : [field]));
  expect(flags.filter((flag, index) => flags.indexOf(flag) !== index)).toEqual([]);
  expect(fields.filter((field, index) => fields.indexOf(field) !== index)).toEqual([]);
  expect(fields.filter((field) => fields.some((other) => other.startsWith(`${field}.`)))).toEqual([]);
});

test.each(optionRows.map((row) => ({ name: row.flag ?? row.field ?? "", row })))(
  "the default of $name is the same after writing and reading it as flag and field",
  ({ row }) => {
    const value = DEFAULT_KUBELET_OPTIONS[row.option];
    // An empty string is how an address or a choice says "not set"; no flag writes that.
    expect(row.kind.fromField(row.kind.toField(value))).toEqual({ value });
    expect(row.kind.fromText(row.kind.toText(value))).toEqual({ value });
  },
);

test("no line of the help is longer than 80 columns, and every flag that has an effect is in it", () => {
  const help = renderFlagsHelp();
  expect(help.split("\n").filter((line) => line.length > 80)).toEqual([]);
  for (const { flag } of SHOWN_ROWS) if (flag && flag !== "v") expect(help).toContain(`--${flag}`);
});

test("docs/flags.md is what the table says", () => {
  const file = join(import.meta.dir, "../../docs/flags.md");
  // When this fails: bun scripts/generate-flags-doc.ts
  expect(readFileSync(file, "utf8")).toBe(renderFlagsDoc());
});

/** Names too common to search for. */
const COMMON = new Set(["port", "address", "output", "validate", "kubeconfig"]);

test("an option is read somewhere", () => {
  const sources = readSources(join(import.meta.dir, "../../src"));
  // These only decide the values of others, in resolve-options.ts.
  const derived = new Set(["enableServer", "mergeDefaultEvictionSettings"]);
  const names = Object.keys(DEFAULT_KUBELET_OPTIONS).filter((name) => !COMMON.has(name) && !derived.has(name));
  // A name here: the option has a row, and no code that reads it.
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(sources))).toEqual([]);
});

function readSources(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/option-rows|validate-options|resolve-options|flags-doc/.test(path))
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
}

test("upstream's fields are all known", () => {
  // Source: kubelet.config.k8s.io/v1beta1 KubeletConfiguration as of Kubernetes 1.37.
  const upstream =
    `enableServer staticPodPath podLogsDir syncFrequency fileCheckFrequency httpCheckFrequency staticPodURL
    staticPodURLHeader address port readOnlyPort tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences tlsMinVersion
    rotateCertificates serverTLSBootstrap authentication.x509.clientCAFile authentication.webhook.enabled
    authentication.webhook.cacheTTL authentication.anonymous.enabled authorization.mode authorization.webhook.cacheAuthorizedTTL
    authorization.webhook.cacheUnauthorizedTTL registryPullQPS registryBurst imagePullCredentialsVerificationPolicy
    preloadedImagesVerificationAllowlist eventRecordQPS eventBurst enableDebuggingHandlers enableContentionProfiling healthzPort
    healthzBindAddress oomScoreAdj clusterDomain clusterDNS streamingConnectionIdleTimeout nodeStatusUpdateFrequency
    nodeStatusReportFrequency nodeLeaseDurationSeconds imageMinimumGCAge imageMaximumGCAge imageGCHighThresholdPercent
    imageGCLowThresholdPercent volumeStatsAggPeriod kubeletCgroups systemCgroups cgroupRoot cgroupsPerQOS cgroupDriver
    cpuManagerPolicy singleProcessOOMKill cpuManagerPolicyOptions cpuManagerReconcilePeriod memoryManagerPolicy
    topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions qosReserved runtimeRequestTimeout hairpinMode maxPods
    podCIDR podPidsLimit resolvConf runOnce cpuCFSQuota cpuCFSQuotaPeriod nodeStatusMaxImages maxOpenFiles contentType kubeAPIQPS
    kubeAPIBurst serializeImagePulls maxParallelImagePulls evictionHard evictionSoft evictionSoftGracePeriod
    evictionPressureTransitionPeriod evictionMaxPodGracePeriod evictionMinimumReclaim mergeDefaultEvictionSettings podsPerCore
    enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains iptablesMasqueradeBit iptablesDropBit featureGates
    failSwapOn memorySwap.swapBehavior containerLogMaxSize containerLogMaxFiles containerLogMaxWorkers containerLogMonitorInterval
    configMapAndSecretChangeDetectionStrategy systemReserved kubeReserved reservedSystemCPUs showHiddenMetricsForVersion
    systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable allowedUnsafeSysctls volumePluginDir providerID
    kernelMemcgNotification logging.format logging.flushFrequency logging.verbosity logging.vmodule logging.options
    enableSystemLogHandler enableSystemLogQuery shutdownGracePeriod shutdownGracePeriodCriticalPods
    shutdownGracePeriodByPodPriority crashLoopBackOff.maxContainerRestartPeriod reservedMemory enableProfilingHandler
    enableDebugFlagsHandler seccompDefault memoryThrottlingFactor registerWithTaints registerNode tracing
    localStorageCapacityIsolation containerRuntimeEndpoint imageServiceEndpoint failCgroupV1 userNamespaces`.split(
      /\s+/,
    );
  expect(upstream.filter((field) => !ROW_BY_FIELD.has(field))).toEqual([]);
});

test("a change is live or needs a restart; equal lists are not a change", () => {
  const next = {
    ...DEFAULT_KUBELET_OPTIONS,
    verbosity: 4,
    readOnlyPort: 1,
    nodeLabels: structuredClone(DEFAULT_KUBELET_OPTIONS.nodeLabels),
    evictionHard: structuredClone(DEFAULT_KUBELET_OPTIONS.evictionHard),
  };
  expect(compareOptions(DEFAULT_KUBELET_OPTIONS, next)).toEqual({ live: ["verbosity"], needRestart: ["readOnlyPort"] });
});

test.each([
  [0, { XDG_DATA_HOME: "/data" }, "/var/lib/kubelet", "/var/log"],
  [1000, {}, "/home/edge/.local/share/kubelet-ts", "/home/edge/.local/share/kubelet-ts/log"],
  [1000, { XDG_DATA_HOME: "/data" }, "/data/kubelet-ts", "/data/kubelet-ts/log"],
  // The specification ignores relative paths.
  [1000, { XDG_DATA_HOME: "data" }, "/home/edge/.local/share/kubelet-ts", "/home/edge/.local/share/kubelet-ts/log"],
])("the directories of user %p with %p are %s", (uid, environment, rootDir, logs) => {
  const want = { rootDir, podLogsDir: `${logs}/pods`, containersLogsDir: `${logs}/containers` };
  expect(defaultDirectories(uid, environment, "/home/edge")).toEqual(want);
});
