import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OPTION_TABLE } from "../../src/config/option-table.ts";

/**
 * Where each flag is seen to have its effect, not only to be read: the file, the title of the test, the flags. Fields
 * without a flag stand under their own name.
 */
const EFFECTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "integration/image-gc.test.ts": {
    "on a full disk exactly our unused images go":
      "image-gc-high-threshold image-gc-low-threshold minimum-image-ttl-duration",
  },
  "integration/flags-at-work.test.ts": {
    "--docker-endpoint, --runtime-request-timeout: who does not answer is not waited for": "docker-endpoint",
    "--docker-endpoint, --runtime-request-timeout": "runtime-request-timeout",
    "--image-pull-progress-deadline: a stalled pull is cancelled": "image-pull-progress-deadline",
    "--serialize-image-pulls: one at a time, unless it is off": "serialize-image-pulls",
    "--max-parallel-image-pulls: that many at a time": "max-parallel-image-pulls",
    "--registry-qps, --registry-burst: no more often than that": "registry-qps registry-burst",
    "--image-credential-provider-config": "image-credential-provider-config",
    "--image-credential-provider-bin-dir": "image-credential-provider-bin-dir",
    "--cgroup-driver: another one than the engine's ends the start": "cgroup-driver",
    "--manifest-url, --manifest-url-header, -ca-file, -client-cert-file, -client-key-file, -timeout": `
      manifest-url manifest-url-header manifest-url-ca-file manifest-url-client-cert-file
      manifest-url-client-key-file manifest-url-timeout http-check-frequency`,
    "--sync-frequency, --event-qps, --event-burst": "sync-frequency event-qps event-burst",
    "--oom-score-adj, --feature-gates, --config-dir": "config-dir oom-score-adj feature-gates",
    "--crash-loop-back-off-max, and the dead that pile up, or do not": `
      crash-loop-back-off-max minimum-container-ttl-duration maximum-dead-containers-per-container
      maximum-dead-containers`,
    "--keep-terminated-pod-volumes": "keep-terminated-pod-volumes",
    "--cadvisor-bind-address": "cadvisor-bind-address",
  },
  "integration/secret-values.test.ts": { "--manifest-identity-file: an encrypted manifest": "manifest-identity-file" },
  "integration/flags.test.ts": {
    "--file-check-frequency finds what no event reports": "file-check-frequency",
    "--validate: an unknown field is refused, warned of, ignored": "validate",
    "--output, --timeout": "runonce timeout output",
    "--wait": "wait",
    "--config: its values are in /configz, with secrets masked": "config",
    "--hostname-override and --node-ip reach the pod": "hostname-override node-ip",
    "--node-labels: a nodeSelector that asks for one is met": "node-labels",
    "--root-dir: a second kubelet-ts on it is refused, next to it is not": "root-dir",
    "--system-reserved, --kube-reserved, --eviction-hard are kept from pods": "system-reserved kube-reserved",
    "--pod-infra-container-image is pulled for the sandbox": "pod-infra-container-image",
    "--allow-privileged: without it such a pod is refused": "allow-privileged",
    "--allowed-unsafe-sysctls": "allowed-unsafe-sysctls",
    "--seccomp-default=false gives upstream's way": "seccomp-default",
    "--pod-max-pids": "pod-max-pids",
    "--cgroup-root and --cgroups-per-qos": "cgroup-root cgroups-per-qos",
    "--cpu-cfs-quota, --cpu-cfs-quota-period": "cpu-cfs-quota cpu-cfs-quota-period",
    "--cluster-dns, --cluster-domain, --resolv-conf": "cluster-dns cluster-domain resolv-conf",
    "--container-log-max-size, --container-log-max-files": "container-log-max-size container-log-max-files",
    "--pod-logs-dir, --containers-logs-dir": "pod-logs-dir containers-logs-dir",
    "--enable-server=false leaves /healthz": "enable-server",
    "--read-only-port=0, --cadvisor-port=0 are off": "read-only-port cadvisor-port",
    "--healthz-bind-address, --read-only-bind-address, --address":
      "read-only-bind-address healthz-bind-address address",
    "--read-only-full: environment values are hidden unless it is set": "read-only-full",
    "--v, --log-format, --log-dir, --logtostderr": "v log-format log-dir logtostderr",
  },
  "kubelet/rollout-manager.test.ts": { "a serial rollout changes one pod at a time and stops at a failure": "rollout" },
  "config/option-table.test.ts": { "no line of the help is longer than 80 columns": "help" },
  "integration/binary.test.ts": { "reports its version and the commit it was built from": "version" },
  "stats/node-stats.test.ts": {
    "of resources can be left out, so that a client of 1.20 finds its own": "disabled-metrics",
    "cgroups of the system that options name": "kubelet-cgroups runtime-cgroups system-cgroups",
  },
  "real-cluster/cni.test.ts": {
    "a pod has an address, host ports and names of the plugins' network, and gives them back":
      "network-plugin cni-conf-dir cni-bin-dir cni-cache-dir",
  },
  "integration/node-object.test.ts": {
    "reports what the machine has, what is set aside, and what it is short of":
      "register-with-taints pods-per-core eviction-soft",
  },
  "integration/sources.test.ts": {
    "a killed container comes back, a removed one too": "pod-manifest-path",
    "refused pods say why and come in when there is room": "max-pods",
  },
  "daemon/process-settings.test.ts": {
    "swap: said, or the end of it with --fail-swap-on": "fail-swap-on",
    "the OOM score is set and the limit of open files raised": "max-open-files",
  },
  "integration/shutdown.test.ts": {
    "waits for pods, critical ones last; afterwards they run again":
      "shutdown-grace-period shutdown-grace-period-critical-pods",
  },
  "plan/node-shutdown.test.ts": { "by priority, in whatever order they stand": "shutdownGracePeriodByPodPriority" },
  "cluster/client/kubeconfig.test.ts": { "paths are relative to the file": "kubeconfig" },
  "cluster/certificates/certificate-manager.test.ts": {
    "--bootstrap-kubeconfig counts while there is no kubeconfig": "bootstrap-kubeconfig",
  },
  "cluster/certificates/certificate-files.test.ts": {
    "--rotate-certificates": "rotate-certificates",
    "--rotate-server-certificates": "rotate-server-certificates",
  },
  "server/node-object.test.ts": { "--node-status-max-images": "node-status-max-images" },
  "cluster/node/node-plan.test.ts": {
    "a Node that exists": "register-node",
    "--register-schedulable=false": "register-schedulable",
    "--cloud-provider=external": "cloud-provider",
    "--provider-id": "provider-id",
    "the status of the Node": "node-status-update-frequency nodeStatusReportFrequency nodeLeaseDurationSeconds",
    "--enable-controller-attach-detach and --node-ip are annotations": "enable-controller-attach-detach",
  },
  "cluster/client/cluster-client.test.ts": { "--kube-api-qps and --kube-api-burst": "kube-api-qps kube-api-burst" },
  "plan/container-limits.test.ts": {
    "LimitedSwap: an eighth of the memory, an eighth of the swap": "memory-swap-behavior",
  },
  "base/host/oom-group.test.ts": { "the container's cgroup is reported": "singleProcessOOMKill" },
  "integration/kubectl.test.ts": {
    "the port, the socket and who is let in": "local-api-port local-api-address token-auth-file",
  },
  "server/servers.test.ts": { "a port of 0 is off": "healthz-port" },
  "integration/authenticated-port.test.ts": {
    "--port: without a way in it stays closed unless it is named; 0 is off": "port",
    "over a certificate of our own that is kept": "cert-dir",
    "--tls-cert-file, --tls-private-key-file": "tls-cert-file tls-private-key-file",
    "who has a certificate gets in": "client-ca-file",
    "--anonymous-auth, --enable-debugging-handlers=false": "anonymous-auth enable-debugging-handlers",
    "--authorization-mode=AlwaysDeny": "authorization-mode",
  },
  "server/listener.test.ts": { "--tls-min-version": "tls-min-version", "--tls-cipher-suites": "tls-cipher-suites" },
  "real-cluster/authenticated-port.test.ts": {
    "bearer tokens are reviewed, and what they may do is the API server's decision": "authentication-token-webhook",
  },
  "server/client-identity.test.ts": {
    "answers about tokens, valid or not, are kept for their time": "authentication-token-webhook-cache-ttl",
    "what is allowed is kept longer than what is denied":
      "authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl",
  },
  "server/authenticated-routes-logs.test.ts": { "a directory is a list (oracle 97)": "enableSystemLogHandler" },
  "server/remote-command.test.ts": {
    "a session in which nothing happens ends after --streaming-connection-idle-timeout":
      "streaming-connection-idle-timeout",
  },
  "integration/image-updates.test.ts": {
    "images of a directory are there before the first pod": "images-dir",
    "the node's default, its schedule and its window":
      "image-update image-update-schedule image-update-window image-update-jitter",
  },
  "plan/image-gc.test.ts": { "too old goes whatever the disk": "image-maximum-gc-age" },
  "integration/serial/eviction.test.ts": {
    "short of memory: who uses most goes": "eviction-hard eviction-pressure-transition-period",
  },
  "kubelet/eviction/eviction-manager.test.ts": {
    "below a soft threshold a pod goes after the grace period": "eviction-soft-grace-period",
    "a pod goes after the grace period, with time to end": "eviction-max-pod-grace-period",
  },
  "plan/eviction.test.ts": { "met until the minimum reclaim is free too": "eviction-minimum-reclaim" },
  "config/resolve-options.test.ts": {
    "thresholds: given ones replace all, unless merged": "mergeDefaultEvictionSettings",
  },
  "integration/serial/stats.test.ts": {
    "agree with the kernel's files and with what was written": "volume-stats-agg-period",
  },
  "integration/live-settings.test.ts": {
    "the last known good configuration comes back": "dynamic-config-dir config-trial-period",
  },
};

/** Flags that do something under a name that is not just an old one. */
const working = OPTION_TABLE.flatMap((row) => {
  if (row.is === "command") return [row.flag];
  if (row.is !== "option" || row.deprecated) return [];
  return [row.flag ?? row.field ?? ""];
});

const rows = Object.entries(EFFECTS).flatMap(([file, titles]) =>
  Object.entries(titles).flatMap(([title, flags]) =>
    flags
      .trim()
      .split(/\s+/)
      .map((flag) => ({ flag, file, title })),
  ),
);

test("every flag has a test that shows its effect", () => {
  // A name here: write the test, on a real engine where people would see the effect, and say above where it is.
  const shown = rows.map(({ flag }) => flag);
  expect(working.filter((name) => !shown.includes(name))).toEqual([]);
  const known = new Set(OPTION_TABLE.map((row) => row.flag ?? row.field));
  expect(shown.filter((name) => !known.has(name))).toEqual([]);
});

test.each(rows)("--$flag: the test is there", ({ file, title }) => {
  expect(readFileSync(join(import.meta.dir, "..", file), "utf8").includes(title)).toBe(true);
});
