import { DEFAULT_DIRECTORIES } from "../default-directories.ts";
import { shutdownPeriods, taints } from "../kinds/list-kinds.ts";
import { featureGates, labels, reservedResources } from "../kinds/map-kinds.ts";
import { boolean, directory, duration, integer, ipAddress, MAX_INT32, text } from "../kinds/scalar-kinds.ts";
import { inapplicable, NONE, OURS, option, options, refused, UPSTREAM } from "../option-row.ts";

export const NODE_OPTIONS = options("Node", {
  hostnameOverride: option("hostname-override", OURS, text, "", {
    description: "Name of the node, and the suffix of the names of static pods.",
    defaultText: "the host name when the root directory was first used",
  }),
  nodeIp: option("node-ip", "kubeletTs.nodeIP", ipAddress, "", {
    description: "Address of the node, which pods learn as status.hostIP.",
    defaultText: "that of the default route",
  }),
  nodeLabels: option("node-labels", OURS, labels, NONE, {
    description: "Labels of the node, for nodeSelector and /node, and of the Node object that is created in a cluster.",
  }),
  nodeTaints: option("register-with-taints", "registerWithTaints", taints, [], {
    description:
      "Taints of the node, shown by /node, and of the Node object that is created in a cluster. NoExecute taints apply to no pod from a file: static pods tolerate them.",
  }),
  rootDir: option("root-dir", OURS, directory, DEFAULT_DIRECTORIES.rootDir, {
    description: "Directory for volumes, checkpoints and state. One kubelet-ts per directory.",
    defaultText: "/var/lib/kubelet; ~/.local/share/kubelet-ts without root",
  }),
  maxPods: option("max-pods", UPSTREAM, integer(0, MAX_INT32), 110, {
    description: "Pods that may run; those beyond it are refused with OutOfpods.",
  }),
  podsPerCore: option("pods-per-core", UPSTREAM, integer(0, MAX_INT32), 0, {
    description: "Pods that may run per CPU core, within --max-pods; 0 sets no such limit.",
  }),
  systemReserved: option("system-reserved", UPSTREAM, reservedResources, NONE, {
    description:
      "Resources reserved for the system: pods whose requests do not fit into the rest are refused, and the cgroup of all pods is limited to it.",
  }),
  kubeReserved: option("kube-reserved", UPSTREAM, reservedResources, NONE, {
    description: "Resources reserved for kubelet-ts and the engine, in the same way.",
  }),
  failSwapOn: option("fail-swap-on", UPSTREAM, boolean, false, {
    description: "Refuse to start while swap is on.",
  }),
  maxOpenFiles: option("max-open-files", UPSTREAM, integer(0, Number.MAX_SAFE_INTEGER), 1_000_000, {
    description: "Limit of open files of kubelet-ts, as far as the system allows to raise it.",
  }),
  oomScoreAdj: option("oom-score-adj", UPSTREAM, integer(-1000, 1000), -999, {
    description: "oom_score_adj of kubelet-ts, as far as the system allows to lower it.",
    zeroCounts: true,
  }),
  featureGates: option("feature-gates", UPSTREAM, featureGates, NONE, {
    description: "Feature gates of the kubelet; unknown ones warn.",
  }),
  shutdownGracePeriodMs: option("shutdown-grace-period", UPSTREAM, duration(), 0, {
    description: "How long a shutdown of the machine waits for pods to stop; 0s does not wait.",
  }),
  shutdownGracePeriodCriticalPodsMs: option("shutdown-grace-period-critical-pods", UPSTREAM, duration(), 0, {
    description: "How much of that is kept for critical pods, which stop last.",
  }),
  shutdownGracePeriodByPodPriority: option(undefined, UPSTREAM, shutdownPeriods, [], {
    description: "Replaces both: the time for pods of each priority and above, lowest first.",
  }),
});

export const NODE_OTHERS = [
  ...refused("kubelets take the address of an API server from a file: use --kubeconfig", "api-servers"),
  ...refused("cloud providers are not part of kubelet-ts; use --cloud-provider=external", "cloud-config"),
  ...inapplicable(
    "it is obsolete: Kubernetes does not use it any more",
    "master-service-namespace reconcile-cidr? require-kubeconfig?",
  ),
  ...inapplicable("cgroup v1 hosts are supported", "|failCgroupV1", ["false"]),
  ...inapplicable("one instance per root directory is always ensured", "lock-file exit-on-lock-contention?"),
  ...inapplicable(
    "kubelet-ts has no such manager; containers run on all CPUs",
    `
      cpu-manager-policy|cpuManagerPolicy |cpuManagerPolicyOptions cpu-manager-policy-options
      cpu-manager-reconcile-period|cpuManagerReconcilePeriod memory-manager-policy|memoryManagerPolicy
      reserved-memory|reservedMemory topology-manager-policy|topologyManagerPolicy |topologyManagerPolicyOptions
      topology-manager-policy-options topology-manager-scope|topologyManagerScope reserved-cpus|reservedSystemCPUs
      qos-reserved|qosReserved |memoryThrottlingFactor`,
    ["none", "None", "10s", "container"],
  ),
  ...inapplicable(
    "kubelet-ts leaves its own cgroup and those of the system alone",
    `
      resource-container system-container system-reserved-cgroup|systemReservedCgroup
      kube-reserved-cgroup|kubeReservedCgroup`,
  ),
  ...inapplicable(
    "the reservations bound the cgroup of all pods, and no other",
    "enforce-node-allocatable|enforceNodeAllocatable",
    ["pods"],
  ),
  ...inapplicable("kubelet-ts changes no kernel settings", "protect-kernel-defaults?|protectKernelDefaults"),
  ...inapplicable(
    "a test aid of the kubelet",
    `
      really-crash-for-testing? chaos-chance containerized? babysit-daemons? experimental-nvidia-gpus`,
  ),
];
