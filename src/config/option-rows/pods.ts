import { DEFAULT_DIRECTORIES } from "../default-directories.ts";
import { addressRanges, directoryList, ipList, sysctlPatterns } from "../kinds/list-kinds.ts";
import {
  addressRange,
  boolean,
  byteSize,
  directory,
  duration,
  file,
  imageName,
  integer,
  MAX_INT32,
  oneOf,
  optionalBoolean,
  optionalImageName,
  optionalPortRange,
  portPair,
  text,
} from "../kinds/scalar-kinds.ts";
import { inapplicable, OURS, option, options, UPSTREAM } from "../option-row.ts";

const DOCKER_NETWORK = "the network of pods is Docker's, or that of CNI plugins with their own configuration";

export const POD_OPTIONS = {
  ...options("What pods may do", {
    allowPrivileged: option("allow-privileged", OURS, boolean, false, {
      description: "Allow privileged containers.",
      defaultText: "false; true with --kubeconfig",
      live: true,
    }),
    allowedUnsafeSysctls: option("allowed-unsafe-sysctls", UPSTREAM, sysctlPatterns, [], {
      oldFlag: "experimental-allowed-unsafe-sysctls",
      description: "Sysctls pods may set beyond the safe ones; a trailing * matches any ending.",
    }),
    seccompDefault: option("seccomp-default", UPSTREAM, boolean, true, {
      description: "Run containers under the engine's seccomp profile unless they set another one.",
    }),
    podPidsLimit: option("pod-max-pids", UPSTREAM, integer(-1, Number.MAX_SAFE_INTEGER, "-1 = no limit"), -1, {
      description: "Processes one pod may have; -1 sets no limit.",
      zeroCounts: true,
    }),
    memorySwap: option("memory-swap-behavior", "memorySwap.swapBehavior", oneOf("NoSwap", "LimitedSwap"), "NoSwap", {
      description: "Swap of containers: none, or by their share of the memory.",
    }),
    singleProcessOomKill: option(undefined, "singleProcessOOMKill", optionalBoolean, undefined, {
      description: "Out of memory kills one process of a container instead of all of them.",
      defaultText: "false; true on cgroup v1, which has no group kill",
    }),
    crashLoopBackOffMaxMs: option(
      "crash-loop-back-off-max",
      "crashLoopBackOff.maxContainerRestartPeriod",
      duration(1000, 300_000),
      300_000,
      { description: "Longest delay before a crashing container is started again.", live: true },
    ),
    keepTerminatedPodVolumes: option("keep-terminated-pod-volumes", OURS, boolean, false, {
      description: "Keep the volumes of a finished pod until its manifest is removed.",
    }),
    cgroupRoot: option("cgroup-root", UPSTREAM, text, "", {
      description: "Cgroup below which the cgroups of pods are created.",
      defaultText: "the root cgroup",
    }),
    cgroupsPerQos: option("cgroups-per-qos", "cgroupsPerQOS", boolean, true, {
      description: "Give every pod a cgroup of its own below that of its QoS class.",
    }),
    cgroupDriver: option("cgroup-driver", UPSTREAM, oneOf("", "cgroupfs", "systemd"), "", {
      description: "Must be what the engine uses.",
      defaultText: "what the engine uses",
    }),
    cpuCfsQuota: option("cpu-cfs-quota", "cpuCFSQuota", boolean, true, { description: "Enforce CPU limits." }),
    cpuCfsQuotaPeriodMs: option("cpu-cfs-quota-period", "cpuCFSQuotaPeriod", duration(1, 1000), 100, {
      description: "Period over which CPU limits are enforced.",
    }),
  }),
  ...options("Network of pods", {
    // Only the last value of the command line counts, so it is checked with the other options.
    networkPlugin: option("network-plugin", OURS, { ...text, hint: "cni", choices: ["cni"] }, "", {
      description: "cni: plugins of the Container Network Interface make the network of pods.",
      defaultText: "Docker makes it",
    }),
    cniConfDir: option("cni-conf-dir", OURS, directory, "/etc/cni/net.d", {
      description: "Directory of the network configuration: the first .conflist, .conf or .json file that can be used.",
    }),
    cniBinDirs: option("cni-bin-dir", OURS, directoryList, ["/opt/cni/bin"], {
      description: "Directories of the plugins, separated by commas.",
    }),
    cniCacheDir: option("cni-cache-dir", OURS, directory, "/var/lib/kubelet/cni", {
      description: "Directory where the results of the plugins are kept, which later releases the networks.",
      defaultText: "<root-dir>/cni",
    }),
    clusterDns: option("cluster-dns", "clusterDNS", ipList, [], {
      description: "Name servers of pods with dnsPolicy ClusterFirst. Repeatable.",
      live: true,
    }),
    clusterDomain: option("cluster-domain", UPSTREAM, text, "", {
      description: "Domain in which those pods look up names, and of subdomain host names.",
      live: true,
    }),
    clusterDnsImage: option("cluster-dns-image", OURS, optionalImageName, "", {
      description: "Image with dnsmasq and a shell, for a DNS server with the names of Services.",
      defaultText: "none: they are in hosts files only",
    }),
    serviceClusterIpRange: option("service-cluster-ip-range", OURS, addressRange, "", {
      description:
        "Addresses for Services, as 10.96.0.0/16 or 10.96.0.0/16,fd00:96::/112; none: their names lead to pods.",
      defaultText: "10.96.0.0/16, or the next range of a list that no network of this machine has",
    }),
    serviceNodePortRange: option("service-node-port-range", OURS, optionalPortRange, "", {
      description: "Range of the node ports of Services; clients may name no other.",
      defaultText: "30000-32767, and a Service may name any other port",
    }),
    nodePortAddresses: option("nodeport-addresses", OURS, addressRanges, [], {
      description: "Ranges of the machine's addresses on which Services are published.",
      defaultText: "all",
    }),
    ingressImage: option("ingress-image", OURS, imageName, "nginx", {
      description: "Image of the server of Ingresses: nginx 1.19.4 or newer, with a shell.",
    }),
    ingressPorts: option("ingress-ports", OURS, portPair, "80,443", {
      description: "Ports of the machine that it has, for HTTP and for HTTPS.",
    }),
    resolvConf: option("resolv-conf", UPSTREAM, file, "/etc/resolv.conf", {
      description: "File the resolv.conf of pods is made from; empty for none.",
      zeroCounts: true,
      live: true,
    }),
  }),
  ...options("Container logs", {
    containerLogMaxSizeBytes: option("container-log-max-size", UPSTREAM, byteSize(1024), 10 * 1024 * 1024, {
      description: "A container's log file is rotated at this size.",
    }),
    containerLogMaxFiles: option("container-log-max-files", UPSTREAM, integer(2, MAX_INT32), 5, {
      description: "Log files kept per container.",
    }),
    podLogsDir: option("pod-logs-dir", UPSTREAM, directory, DEFAULT_DIRECTORIES.podLogsDir, {
      description: "Directory of links to the logs by pod, for log shippers; empty for none.",
      defaultText: "/var/log/pods; without root log/pods below the root directory",
    }),
    containersLogsDir: option("containers-logs-dir", OURS, directory, DEFAULT_DIRECTORIES.containersLogsDir, {
      description: "Directory of links to the logs by container, for log shippers; empty for none.",
      defaultText: "/var/log/containers; without root log/containers below the root directory",
    }),
  }),
};

export const POD_OTHERS = [
  ...inapplicable(
    DOCKER_NETWORK,
    `
      network-plugin-dir network-plugin-mtu pod-cidr|podCIDR non-masquerade-cidr configure-cbr0?
      experimental-flannel-overlay?`,
  ),
  ...inapplicable(
    DOCKER_NETWORK,
    `
      hairpin-mode|hairpinMode make-iptables-util-chains?|makeIPTablesUtilChains
      iptables-masquerade-bit|iptablesMasqueradeBit iptables-drop-bit|iptablesDropBit`,
    ["promiscuous-bridge", "true", "14", "15"],
  ),
  ...inapplicable("Docker rotates the logs itself", "|containerLogMaxWorkers |containerLogMonitorInterval"),
  ...inapplicable(
    "kubelet-ts has no plug-ins for volumes",
    "volume-plugin-dir|volumePluginDir experimental-mounter-path",
    ["/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"],
  ),
  ...inapplicable("seccomp profiles are read from <root-dir>/seccomp", "seccomp-profile-root"),
  ...inapplicable(
    "manifests are files of the administrator: every source may use the host's namespaces",
    "host-network-sources host-pid-sources host-ipc-sources",
  ),
  ...inapplicable("user namespaces are set for the whole engine", "|userNamespaces"),
  ...inapplicable(
    "images already on the machine may be used by every pod",
    "|imagePullCredentialsVerificationPolicy |preloadedImagesVerificationAllowlist",
  ),
  ...inapplicable("limits of ephemeral storage are always watched", "|localStorageCapacityIsolation"),
  ...inapplicable("no longer a setting of the kubelet either", "experimental-check-node-capabilities-before-mount?"),
];
