import { expect, test } from "bun:test";
import { toFlagLines, toKubeletConfiguration, toServedConfiguration } from "../../src/config/effective-config.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";

/** Fields of v1beta1 in Kubernetes 1.20 by the type their decoder wants. Source: k8s.io/kubelet/config/v1beta1. */
const FIELDS = {
  boolean: `enableServer rotateCertificates serverTLSBootstrap authentication.webhook.enabled
    authentication.anonymous.enabled enableDebuggingHandlers cgroupsPerQOS runOnce cpuCFSQuota serializeImagePulls
    enableControllerAttachDetach failSwapOn enableSystemLogHandler`,
  string: `staticPodPath staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion
    authentication.x509.clientCAFile authorization.mode healthzBindAddress clusterDomain kubeletCgroups systemCgroups
    cgroupRoot cgroupDriver resolvConf containerLogMaxSize providerID logging.format`,
  integer: `port readOnlyPort registryPullQPS registryBurst eventRecordQPS eventBurst healthzPort oomScoreAdj
    nodeLeaseDurationSeconds imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods podPidsLimit
    nodeStatusMaxImages maxOpenFiles kubeAPIQPS kubeAPIBurst evictionMaxPodGracePeriod podsPerCore containerLogMaxFiles`,
  duration: `syncFrequency fileCheckFrequency httpCheckFrequency authentication.webhook.cacheTTL
    authorization.webhook.cacheAuthorizedTTL authorization.webhook.cacheUnauthorizedTTL streamingConnectionIdleTimeout
    nodeStatusUpdateFrequency nodeStatusReportFrequency imageMinimumGCAge volumeStatsAggPeriod runtimeRequestTimeout
    cpuCFSQuotaPeriod evictionPressureTransitionPeriod shutdownGracePeriod shutdownGracePeriodCriticalPods`,
  strings: "tlsCipherSuites clusterDNS allowedUnsafeSysctls",
  mapOfStrings: "evictionHard evictionSoft evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved",
};

const isText = (value: unknown) => typeof value === "string";
const IS: Record<keyof typeof FIELDS, (value: unknown) => boolean> = {
  boolean: (value) => typeof value === "boolean",
  string: isText,
  integer: Number.isInteger,
  duration: (value) => /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(String(value)),
  strings: (value) => Array.isArray(value) && value.every(isText),
  mapOfStrings: (value) => typeof value === "object" && Object.values(value ?? {}).every(isText),
};

test("/configz decodes with the types of 1.20", async () => {
  const argv = [
    ...[
      "--pod-manifest-path=/etc/a",
      "--pod-manifest-path=/etc/b",
      "--manifest-url=http://a/",
      "--cluster-dns=10.0.0.1",
    ],
    ...["--eviction-soft=memory.available<5%", "--eviction-soft-grace-period=memory.available=1m30s"],
    ...["--eviction-minimum-reclaim=nodefs.available=1Gi", "--system-reserved=cpu=100m,memory=1Gi"],
    ...["--shutdown-grace-period=90s", "--cpu-cfs-quota-period=5ms", "--allowed-unsafe-sysctls=net.core.*"],
  ];
  const { options, errors } = await resolveOptions(argv, "/", "run", {});
  expect(errors).toEqual([]);
  const served = toServedConfiguration(options);
  const fieldOf = (field: string) =>
    field.split(".").reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], served);
  const wrong = (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).flatMap((kind) =>
    FIELDS[kind]
      .split(/\s+/)
      .filter((field) => !IS[kind](fieldOf(field)))
      .map((field) => `${field} is no ${kind}: ${JSON.stringify(fieldOf(field))}`),
  );
  expect(wrong).toEqual([]);
});

test("/configz has one static pod path, as clients decode it, and all of them below kubeletTs", () => {
  const one = { ...DEFAULT_KUBELET_OPTIONS, podManifestPaths: ["/etc/a"] };
  expect(toServedConfiguration(one)).toEqual(toKubeletConfiguration(one));
  const two = { ...one, podManifestPaths: ["/etc/a", "/etc/b"], manifestUrls: ["http://a/", "http://b/"] };
  expect(toServedConfiguration(two)).toMatchObject({
    staticPodPath: "/etc/a",
    staticPodURL: "http://a/",
    kubeletTs: { staticPodPaths: ["/etc/a", "/etc/b"], staticPodURLs: ["http://a/", "http://b/"] },
  });
});

test("an empty list of hard eviction thresholds differs from the defaults", async () => {
  const { options } = await resolveOptions(["--eviction-hard=memory.available<0%"], "/", "run", {});
  expect(options.evictionHard).toEqual([]);
  expect(toKubeletConfiguration(options).evictionHard).toEqual({ "memory.available": "0%" });
  expect(toKubeletConfiguration(DEFAULT_KUBELET_OPTIONS).evictionHard).toHaveProperty(["imagefs.available"], "15%");
});

test("/flagz shows each flag once, and no secret", async () => {
  const { options } = await resolveOptions(
    ["--manifest-url=http://u:s3cret@a/", "--manifest-url-header=A:s3cret"],
    "/",
    "run",
    {},
  );
  const lines = toFlagLines(options);
  expect(lines).toContain("read-only-port=10255");
  expect(lines.filter((line) => line.includes("s3cret"))).toEqual([]);
  expect(lines).toHaveLength(new Set(lines.map((line) => line.split("=")[0])).size);
});
