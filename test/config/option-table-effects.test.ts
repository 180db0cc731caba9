import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OPTION_TABLE } from "../../src/config/option-table.ts";

/**
 * Where each flag is seen to have its effect, not only to be read: the test file, the title of the test, the flags. Fields
 * without a flag have their own names.
 */
const EFFECTS = `
integration/image-gc | on a full disk exactly our unused images go | image-gc-high-threshold image-gc-low-threshold minimum-image-ttl-duration
integration/flags-at-work | --docker-endpoint, --runtime-request-timeout: an engine that does not answer is not waited for | docker-endpoint
integration/flags-at-work | --docker-endpoint, --runtime-request-timeout | runtime-request-timeout
integration/flags-at-work | --serialize-image-pulls: one at a time, unless it is off | serialize-image-pulls
integration/flags-at-work | --max-parallel-image-pulls, --registry-qps, --registry-burst, --image-pull-progress-deadline | max-parallel-image-pulls registry-qps registry-burst image-pull-progress-deadline
integration/flags-at-work | --image-credential-provider-config | image-credential-provider-config
integration/flags-at-work | --image-credential-provider-bin-dir | image-credential-provider-bin-dir
integration/flags-at-work | --cgroup-driver: another one than the engine's ends the start | cgroup-driver
integration/flags-at-work | --manifest-url, --manifest-url-header, -ca-file, -client-cert-file, -client-key-file, -timeout | manifest-url manifest-url-header manifest-url-ca-file manifest-url-client-cert-file manifest-url-client-key-file manifest-url-timeout http-check-frequency
integration/flags-at-work | --sync-frequency, --event-qps, --event-burst | sync-frequency event-qps event-burst
integration/flags-at-work | --oom-score-adj, --feature-gates, --config-dir | config-dir oom-score-adj feature-gates
integration/flags-at-work | --crash-loop-back-off-max, and how many dead containers are kept | crash-loop-back-off-max minimum-container-ttl-duration maximum-dead-containers-per-container maximum-dead-containers
integration/flags-at-work | --keep-terminated-pod-volumes | keep-terminated-pod-volumes
integration/secret-values | --manifest-identity-file: an encrypted manifest | manifest-identity-file
integration/flags | --file-check-frequency finds what no event reports | file-check-frequency
integration/flags | --validate: an unknown field is refused, warned of, ignored | validate
integration/flags | --output, --timeout | runonce timeout output
integration/flags | --wait | wait
integration/flags | --config: its values are in /configz, with secrets masked | config
integration/flags | --hostname-override and --node-ip reach the pod | hostname-override node-ip
integration/flags | --node-labels: a nodeSelector that asks for one is met | node-labels
integration/flags | --root-dir: a second kubelet-ts on it is refused, next to it is not | root-dir
integration/flags | --system-reserved, --kube-reserved, --eviction-hard are kept from pods | system-reserved kube-reserved
integration/flags | --pod-infra-container-image is pulled for the sandbox | pod-infra-container-image
integration/flags | --allow-privileged: without it such a pod is refused | allow-privileged
integration/flags | --allowed-unsafe-sysctls | allowed-unsafe-sysctls
integration/flags | --seccomp-default=false: unconfined, as upstream | seccomp-default
integration/flags | --pod-max-pids | pod-max-pids
integration/flags | --cgroup-root and --cgroups-per-qos | cgroup-root cgroups-per-qos
integration/flags | --cpu-cfs-quota, --cpu-cfs-quota-period | cpu-cfs-quota cpu-cfs-quota-period
integration/flags | --cluster-dns, --cluster-domain, --resolv-conf | cluster-dns cluster-domain resolv-conf
integration/flags | --container-log-max-size, --container-log-max-files | container-log-max-size container-log-max-files
integration/flags | --pod-logs-dir, --containers-logs-dir | pod-logs-dir containers-logs-dir
integration/flags | --enable-server=false leaves /healthz | enable-server
integration/flags | --read-only-port=0, --cadvisor-port=0 are off | read-only-port cadvisor-port
integration/flags | --healthz-bind-address, --read-only-bind-address, --cadvisor-bind-address, --address | read-only-bind-address healthz-bind-address cadvisor-bind-address address
integration/flags | --read-only-full: environment values are hidden unless it is set | read-only-full
integration/flags | --v, --log-format, --log-dir, --logtostderr | v log-format log-dir logtostderr
integration/services | --service-cluster-ip-range | service-cluster-ip-range
integration/services | UDP, --nodeport-addresses | nodeport-addresses
integration/ingress | --ingress-image, --ingress-ports | ingress-image ingress-ports
integration/cluster-dns | --cluster-dns-image: names of Services, and those outside | cluster-dns-image
plan/service-addresses-assignment | has a node port of the range that was set, and may name no other | service-node-port-range
kubelet/rollout-manager | a serial rollout changes one pod at a time and stops at a failure | rollout
config/option-table | no line of the help is longer than 80 columns | help
integration/binary | reports its version and the commit it was built from | version
stats/node-stats | of resources can be left out, so that a client of 1.20 finds its own | disabled-metrics
stats/node-stats | cgroups of the system that options name | kubelet-cgroups runtime-cgroups system-cgroups
real-cluster/cni | a pod has an address, host ports and names of the plugins' network, and gives them back | network-plugin cni-conf-dir cni-bin-dir cni-cache-dir
integration/node-object | reports what the machine has, what is set aside, and what it is short of | register-with-taints pods-per-core eviction-soft
integration/oracle-restarts | 88-manifest-path-missing-or-file: a single file | pod-manifest-path
integration/sources | refused pods say why and come in when there is room | max-pods
daemon/process-settings | swap is logged, and is an error with --fail-swap-on | fail-swap-on
daemon/process-settings | the OOM score is set and the limit of open files raised | max-open-files
integration/shutdown | waits for pods, critical ones last; afterwards they run again | shutdown-grace-period shutdown-grace-period-critical-pods
plan/node-shutdown | by priority, in whatever order they stand | shutdownGracePeriodByPodPriority
cluster/client/credentials-kubeconfig | paths are relative to the file | kubeconfig
cluster/certificates/certificate-manager | --bootstrap-kubeconfig counts while there is no kubeconfig | bootstrap-kubeconfig
cluster/certificates/certificate-manager | --rotate-certificates | rotate-certificates
cluster/certificates/certificate-manager | --rotate-server-certificates | rotate-server-certificates
server/node-object | --node-status-max-images | node-status-max-images
cluster/node/node-agent-plan | a Node that exists | register-node
cluster/node/node-agent-plan | --register-schedulable=false | register-schedulable
cluster/node/node-agent-plan | --cloud-provider=external | cloud-provider
cluster/node/node-agent-plan | --provider-id | provider-id
cluster/node/node-agent-plan | the status of the Node | node-status-update-frequency nodeStatusReportFrequency nodeLeaseDurationSeconds
cluster/node/node-agent-plan | --enable-controller-attach-detach and --node-ip are annotations | enable-controller-attach-detach
cluster/client/cluster-client | --kube-api-qps and --kube-api-burst | kube-api-qps kube-api-burst
plan/pod-resources | LimitedSwap: an eighth of the memory, an eighth of the swap | memory-swap-behavior
base/host/oom-group | the container's cgroup is reported | singleProcessOOMKill
integration/kubectl | the port, the socket and who has access | local-api-port local-api-address token-auth-file
server/servers | a port of 0 is off | healthz-port
integration/authenticated-port | --port: a port that is named is open, and refuses clients without credentials | port
integration/authenticated-port | our own serving certificate is kept | cert-dir
integration/authenticated-port | --tls-cert-file, --tls-private-key-file | tls-cert-file tls-private-key-file
integration/authenticated-port | a client with a certificate has access | client-ca-file
integration/authenticated-port | --anonymous-auth, --enable-debugging-handlers=false | anonymous-auth enable-debugging-handlers
integration/authenticated-port | --authorization-mode=AlwaysDeny | authorization-mode
server/listener | --tls-min-version | tls-min-version
server/listener | --tls-cipher-suites | tls-cipher-suites
real-cluster/authenticated-port | bearer tokens are reviewed, and what they may do is the API server's decision | authentication-token-webhook
server/client-identity | answers about tokens, valid or not, are kept for their time | authentication-token-webhook-cache-ttl
server/client-identity | what is allowed is kept longer than what is denied | authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
server/authenticated-routes-logs | a directory is a list (oracle 97) | enableSystemLogHandler
server/remote-command | a session in which nothing happens ends after --streaming-connection-idle-timeout | streaming-connection-idle-timeout
integration/image-updates | images of a directory are there before the first pod | images-dir
integration/image-updates | the node's default, its schedule and its window | image-update image-update-schedule image-update-window image-update-jitter
plan/image-gc | too old goes whatever the disk | image-maximum-gc-age
integration/serial/eviction | short of memory: the pod that uses most is evicted | eviction-hard eviction-pressure-transition-period
kubelet/eviction/eviction-manager | below a soft threshold a pod is evicted after the grace period | eviction-soft-grace-period
kubelet/eviction/eviction-manager | threshold, with a grace period of its own | eviction-max-pod-grace-period
plan/eviction | met until the minimum reclaim is free too | eviction-minimum-reclaim
config/resolve-options | thresholds: given ones replace all, unless merged | mergeDefaultEvictionSettings
integration/serial/stats | agree with the kernel's files and with what was written | volume-stats-agg-period
integration/live-settings | the last known good configuration comes back | dynamic-config-dir config-trial-period`;

/** Flags that do something under a name that is not just an old one. */
const working = OPTION_TABLE.flatMap((row) => {
  if (row.is === "command") return [row.flag];
  if (row.is !== "option" || row.deprecated) return [];
  return [row.flag ?? row.field ?? ""];
});

const rows = EFFECTS.trim()
  .split("\n")
  .map((row) => row.split(" | "))
  .flatMap(([file, title = "", flags = ""]) =>
    flags.split(" ").map((flag) => ({ flag, file: `${file}.test.ts`, title })),
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
