import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OPTION_TABLE } from "../../src/config/option-table.ts";

type Place = readonly [file: string, title: string];

const CONTAINERS = "integration/flags.test.ts";
const PROGRAM = "integration/flags.test.ts";
const AT_WORK = "integration/flags-at-work.test.ts";
const AUTHENTICATED = "integration/authenticated-port.test.ts";
const KUBECTL = "integration/kubectl.test.ts";
const IMAGES = "integration/flags-of-images.test.ts";
const MANIFEST_URL = "--manifest-url, --manifest-url-header, -ca-file, -client-cert-file, -client-key-file, -timeout";
const BACK_OFF = "--crash-loop-back-off-max, and the dead that pile up, or do not";
const SHUTDOWN = "waits for pods, critical ones last; afterwards they run again";
const IDENTITY = "server/client-identity.test.ts";
const DELEGATED = "real-cluster/authenticated-port.test.ts";
const TOKENS = "bearer tokens are reviewed, and what they may do is the API server's decision";
const CNI = "real-cluster/cni.test.ts";
const CNI_NETWORK = "a pod has an address, host ports and names of the plugins' network, and gives them back";
const NODE = "reports what the machine has, what is set aside, and what it is short of";

const UPDATES = "integration/image-updates.test.ts";
const NODE_UPDATES = "the node's default, its schedule and its window";
const CERTIFICATES = "cluster/certificates/certificate-manager.test.ts";
const NODE_PLAN = "cluster/node/node-plan.test.ts";

/** Where each flag is seen to have its effect, not only to be read. Fields without a flag stand under their own name. */
const EFFECTS: Readonly<Record<string, Place>> = {
  "pod-manifest-path": ["integration/lifecycle.test.ts", "a killed container comes back, a removed one too"],
  "manifest-url": [AT_WORK, MANIFEST_URL],
  "manifest-url-header": [AT_WORK, MANIFEST_URL],
  "manifest-url-ca-file": [AT_WORK, MANIFEST_URL],
  "manifest-url-client-cert-file": [AT_WORK, MANIFEST_URL],
  "manifest-url-client-key-file": [AT_WORK, MANIFEST_URL],
  "manifest-identity-file": ["integration/secret-values.test.ts", "--manifest-identity-file: an encrypted manifest"],
  "manifest-url-timeout": [AT_WORK, MANIFEST_URL],
  "http-check-frequency": [AT_WORK, MANIFEST_URL],
  "file-check-frequency": [PROGRAM, "--file-check-frequency finds what no event reports"],
  "sync-frequency": [AT_WORK, "--sync-frequency, --event-qps, --event-burst"],
  rollout: ["kubelet/rollout-manager.test.ts", "a serial rollout changes one pod at a time and stops at a failure"],
  validate: [CONTAINERS, "--validate: an unknown field is refused, warned of, ignored"],
  runonce: [CONTAINERS, "--output, --timeout"],
  timeout: [CONTAINERS, "--output, --timeout"],
  wait: [CONTAINERS, "--wait"],
  output: [CONTAINERS, "--output, --timeout"],
  config: [PROGRAM, "--config: its values are in /configz, with secrets masked"],
  "config-dir": [AT_WORK, "--oom-score-adj, --feature-gates, --config-dir"],
  help: ["config/option-table.test.ts", "no line of the help is longer than 80 columns"],
  version: ["integration/binary.test.ts", "reports its version and the commit it was built from"],

  "disabled-metrics": [
    "stats/node-stats.test.ts",
    "of resources can be left out, so that a client of 1.20 finds its own",
  ],
  "hostname-override": [CONTAINERS, "--hostname-override and --node-ip reach the pod"],
  "network-plugin": [CNI, CNI_NETWORK],
  "cni-conf-dir": [CNI, CNI_NETWORK],
  "cni-bin-dir": [CNI, CNI_NETWORK],
  "cni-cache-dir": [CNI, CNI_NETWORK],
  "node-ip": [CONTAINERS, "--hostname-override and --node-ip reach the pod"],
  "node-labels": [CONTAINERS, "--node-labels: a nodeSelector that asks for one is met"],
  "register-with-taints": ["integration/node-object.test.ts", NODE],
  "root-dir": [PROGRAM, "--root-dir: a second kubelet-ts on it is refused, next to it is not"],
  "kubelet-cgroups": ["stats/node-stats.test.ts", "cgroups of the system that options name"],
  "runtime-cgroups": ["stats/node-stats.test.ts", "cgroups of the system that options name"],
  "system-cgroups": ["stats/node-stats.test.ts", "cgroups of the system that options name"],
  "max-pods": ["integration/sources.test.ts", "refused pods say why and come in when there is room"],
  "pods-per-core": ["integration/node-object.test.ts", NODE],
  "system-reserved": [CONTAINERS, "--system-reserved, --kube-reserved, --eviction-hard are kept from pods"],
  "kube-reserved": [CONTAINERS, "--system-reserved, --kube-reserved, --eviction-hard are kept from pods"],
  "fail-swap-on": ["daemon/process-settings.test.ts", "swap: said, or the end of it with --fail-swap-on"],
  "max-open-files": ["daemon/process-settings.test.ts", "the OOM score is set and the limit of open files raised"],
  "oom-score-adj": [AT_WORK, "--oom-score-adj, --feature-gates, --config-dir"],
  "feature-gates": [AT_WORK, "--oom-score-adj, --feature-gates, --config-dir"],
  "shutdown-grace-period": ["integration/shutdown.test.ts", SHUTDOWN],
  "shutdown-grace-period-critical-pods": ["integration/shutdown.test.ts", SHUTDOWN],
  shutdownGracePeriodByPodPriority: ["plan/node-shutdown.test.ts", "by priority, in whatever order they stand"],

  kubeconfig: ["cluster/client/kubeconfig.test.ts", "paths are relative to the file"],
  "bootstrap-kubeconfig": [CERTIFICATES, "--bootstrap-kubeconfig counts while there is no kubeconfig"],
  "rotate-certificates": ["cluster/certificates/certificate-files.test.ts", "--rotate-certificates"],
  "rotate-server-certificates": ["cluster/certificates/certificate-files.test.ts", "--rotate-server-certificates"],
  "node-status-max-images": ["server/node-object.test.ts", "--node-status-max-images"],
  "register-node": [NODE_PLAN, "a Node that exists"],
  "register-schedulable": [NODE_PLAN, "--register-schedulable=false"],
  "cloud-provider": [NODE_PLAN, "--cloud-provider=external"],
  "provider-id": [NODE_PLAN, "--provider-id"],
  "node-status-update-frequency": [NODE_PLAN, "the status of the Node"],
  nodeStatusReportFrequency: [NODE_PLAN, "the status of the Node"],
  nodeLeaseDurationSeconds: [NODE_PLAN, "the status of the Node"],
  "kube-api-qps": ["cluster/client/cluster-client.test.ts", "--kube-api-qps and --kube-api-burst"],
  "kube-api-burst": ["cluster/client/cluster-client.test.ts", "--kube-api-qps and --kube-api-burst"],
  "enable-controller-attach-detach": [NODE_PLAN, "--enable-controller-attach-detach and --node-ip are annotations"],

  "docker-endpoint": [IMAGES, "--docker-endpoint, --runtime-request-timeout: who does not answer is not waited for"],
  "runtime-request-timeout": [IMAGES, "--docker-endpoint, --runtime-request-timeout"],
  "pod-infra-container-image": [CONTAINERS, "--pod-infra-container-image is pulled for the sandbox"],
  "image-pull-progress-deadline": [IMAGES, "--image-pull-progress-deadline: a stalled pull is cancelled"],
  "serialize-image-pulls": [IMAGES, "--serialize-image-pulls: one at a time, unless it is off"],
  "max-parallel-image-pulls": [IMAGES, "--max-parallel-image-pulls: that many at a time"],
  "registry-qps": [IMAGES, "--registry-qps, --registry-burst: no more often than that"],
  "registry-burst": [IMAGES, "--registry-qps, --registry-burst: no more often than that"],
  "images-dir": ["integration/private-images.test.ts", "images of a directory are there before the first pod"],
  "image-credential-provider-config": [IMAGES, "--image-credential-provider-config"],
  "image-credential-provider-bin-dir": [IMAGES, "--image-credential-provider-bin-dir"],

  "allow-privileged": [CONTAINERS, "--allow-privileged: without it such a pod is refused"],
  "allowed-unsafe-sysctls": [CONTAINERS, "--allowed-unsafe-sysctls"],
  "seccomp-default": [CONTAINERS, "--seccomp-default=false gives upstream's way"],
  "pod-max-pids": [CONTAINERS, "--pod-max-pids"],
  "memory-swap-behavior": [
    "plan/container-limits.test.ts",
    "LimitedSwap: an eighth of the memory, an eighth of the swap",
  ],
  singleProcessOOMKill: ["base/host/oom-group.test.ts", "the container's cgroup is reported"],
  "crash-loop-back-off-max": [AT_WORK, BACK_OFF],
  "keep-terminated-pod-volumes": [AT_WORK, "--keep-terminated-pod-volumes"],
  "cgroup-root": [CONTAINERS, "--cgroup-root and --cgroups-per-qos"],
  "cgroups-per-qos": [CONTAINERS, "--cgroup-root and --cgroups-per-qos"],
  "cgroup-driver": [IMAGES, "--cgroup-driver: another one than the engine's ends the start"],
  "cpu-cfs-quota": [CONTAINERS, "--cpu-cfs-quota, --cpu-cfs-quota-period"],
  "cpu-cfs-quota-period": [CONTAINERS, "--cpu-cfs-quota, --cpu-cfs-quota-period"],
  "cluster-dns": [CONTAINERS, "--cluster-dns, --cluster-domain, --resolv-conf"],
  "cluster-domain": [CONTAINERS, "--cluster-dns, --cluster-domain, --resolv-conf"],
  "resolv-conf": [CONTAINERS, "--cluster-dns, --cluster-domain, --resolv-conf"],
  "container-log-max-size": [CONTAINERS, "--container-log-max-size, --container-log-max-files"],
  "container-log-max-files": [CONTAINERS, "--container-log-max-size, --container-log-max-files"],
  "pod-logs-dir": [CONTAINERS, "--pod-logs-dir, --containers-logs-dir"],
  "containers-logs-dir": [CONTAINERS, "--pod-logs-dir, --containers-logs-dir"],

  "enable-server": [PROGRAM, "--enable-server=false leaves /healthz"],
  "local-api-port": [KUBECTL, "the port, the socket and who is let in"],
  "local-api-address": [KUBECTL, "the port, the socket and who is let in"],
  "token-auth-file": [KUBECTL, "the port, the socket and who is let in"],
  "read-only-port": [PROGRAM, "--read-only-port=0, --cadvisor-port=0 are off"],
  "cadvisor-port": [PROGRAM, "--read-only-port=0, --cadvisor-port=0 are off"],
  "cadvisor-bind-address": [AT_WORK, "--cadvisor-bind-address"],
  "read-only-bind-address": [PROGRAM, "--healthz-bind-address, --read-only-bind-address, --address"],
  "healthz-bind-address": [PROGRAM, "--healthz-bind-address, --read-only-bind-address, --address"],
  // It is the read-only port's as well.
  address: [PROGRAM, "--healthz-bind-address, --read-only-bind-address, --address"],
  "read-only-full": [PROGRAM, "--read-only-full: environment values are hidden unless it is set"],
  "healthz-port": ["server/servers.test.ts", "a port of 0 is off"],

  port: [AUTHENTICATED, "--port: without a way in it stays closed unless it is named; 0 is off"],
  "cert-dir": [AUTHENTICATED, "over a certificate of our own that is kept"],
  "tls-cert-file": [AUTHENTICATED, "--tls-cert-file, --tls-private-key-file"],
  "tls-private-key-file": [AUTHENTICATED, "--tls-cert-file, --tls-private-key-file"],
  "tls-min-version": ["server/listener.test.ts", "--tls-min-version"],
  "tls-cipher-suites": ["server/listener.test.ts", "--tls-cipher-suites"],
  "client-ca-file": [AUTHENTICATED, "who has a certificate gets in"],
  "anonymous-auth": [AUTHENTICATED, "--anonymous-auth, --enable-debugging-handlers=false"],
  "authentication-token-webhook": [DELEGATED, TOKENS],
  "authentication-token-webhook-cache-ttl": [IDENTITY, "answers about tokens, valid or not, are kept for their time"],
  "authorization-webhook-cache-authorized-ttl": [IDENTITY, "what is allowed is kept longer than what is denied"],
  "authorization-webhook-cache-unauthorized-ttl": [IDENTITY, "what is allowed is kept longer than what is denied"],
  "authorization-mode": [AUTHENTICATED, "--authorization-mode=AlwaysDeny"],
  "enable-debugging-handlers": [AUTHENTICATED, "--anonymous-auth, --enable-debugging-handlers=false"],
  enableSystemLogHandler: ["server/authenticated-routes-logs.test.ts", "a directory is a list (oracle 97)"],
  "streaming-connection-idle-timeout": [
    "server/remote-command.test.ts",
    "a session in which nothing happens ends after --streaming-connection-idle-timeout",
  ],

  "image-update": [UPDATES, NODE_UPDATES],
  "image-update-schedule": [UPDATES, NODE_UPDATES],
  "image-update-window": [UPDATES, NODE_UPDATES],
  "image-update-jitter": [UPDATES, NODE_UPDATES],
  "image-gc-high-threshold": ["integration/serial/image-gc.test.ts", "on a full disk exactly our unused images go"],
  "image-gc-low-threshold": ["integration/serial/image-gc.test.ts", "on a full disk exactly our unused images go"],
  "minimum-image-ttl-duration": ["integration/serial/image-gc.test.ts", "on a full disk exactly our unused images go"],
  "image-maximum-gc-age": ["plan/image-gc.test.ts", "too old goes whatever the disk"],
  "minimum-container-ttl-duration": [AT_WORK, BACK_OFF],
  "maximum-dead-containers-per-container": [AT_WORK, BACK_OFF],
  "maximum-dead-containers": [AT_WORK, BACK_OFF],
  "eviction-hard": ["integration/serial/eviction.test.ts", "short of memory: who uses most goes"],
  "eviction-pressure-transition-period": ["integration/serial/eviction.test.ts", "short of memory: who uses most goes"],
  "eviction-soft": ["integration/node-object.test.ts", NODE],
  "eviction-soft-grace-period": [
    "kubelet/eviction/eviction-manager.test.ts",
    "below a soft threshold a pod goes after the grace period",
  ],
  "eviction-max-pod-grace-period": [
    "kubelet/eviction/eviction-manager.test.ts",
    "a pod goes after the grace period, with time to end",
  ],
  "eviction-minimum-reclaim": ["plan/eviction.test.ts", "met until the minimum reclaim is free too"],
  mergeDefaultEvictionSettings: ["config/resolve-options.test.ts", "thresholds: given ones replace all, unless merged"],
  "volume-stats-agg-period": [
    "integration/serial/stats.test.ts",
    "agree with the kernel's files and with what was written",
  ],

  "event-qps": [AT_WORK, "--sync-frequency, --event-qps, --event-burst"],
  "event-burst": [AT_WORK, "--sync-frequency, --event-qps, --event-burst"],
  v: [PROGRAM, "--v, --log-format, --log-dir, --logtostderr"],
  "dynamic-config-dir": ["integration/live-settings.test.ts", "the last known good configuration comes back"],
  "config-trial-period": ["integration/live-settings.test.ts", "the last known good configuration comes back"],
  "log-format": [PROGRAM, "--v, --log-format, --log-dir, --logtostderr"],
  "log-dir": [PROGRAM, "--v, --log-format, --log-dir, --logtostderr"],
  logtostderr: [PROGRAM, "--v, --log-format, --log-dir, --logtostderr"],
};

/** Flags that do something under a name that is not just an old one. */
const working = OPTION_TABLE.flatMap((row) => {
  if (row.is === "command") return [row.flag];
  if (row.is !== "option" || row.deprecated) return [];
  return [row.flag ?? row.field ?? ""];
});

test("every flag has a test that shows its effect", () => {
  // A name here: write the test, on a real engine where people would see the effect, and say above where it is.
  expect(working.filter((name) => !(name in EFFECTS))).toEqual([]);
  const known = new Set(OPTION_TABLE.map((row) => row.flag ?? row.field));
  expect(Object.keys(EFFECTS).filter((name) => !known.has(name))).toEqual([]);
});

test.each(Object.entries(EFFECTS))("--%s: the test is there", (_, [file, title]) => {
  expect(readFileSync(join(import.meta.dir, "..", file), "utf8").includes(title)).toBe(true);
});
