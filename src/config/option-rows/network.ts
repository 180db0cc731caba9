import { directoryList } from "../kinds/list-kinds.ts";
import { directory, text } from "../kinds/scalar-kinds.ts";
import { option } from "../option-row.ts";

export const NETWORK_ROWS = [
  option({
    flag: "network-plugin",
    field: "kubeletTs.networkPlugin",
    option: "networkPlugin",
    // Only the last value of the command line counts, so it is checked with the other options.
    kind: { ...text, hint: "cni", choices: ["cni"] },
    default: "",
    subject: "Network of pods",
    description: "cni: plugins of the Container Network Interface make the network of pods.",
    defaultText: "Docker makes it",
  }),
  option({
    flag: "cni-conf-dir",
    field: "kubeletTs.cniConfDir",
    option: "cniConfDir",
    kind: directory,
    default: "/etc/cni/net.d",
    subject: "Network of pods",
    description: "Directory of the network configuration: the first .conflist, .conf or .json file that can be used.",
  }),
  option({
    flag: "cni-bin-dir",
    field: "kubeletTs.cniBinDirs",
    option: "cniBinDirs",
    kind: directoryList,
    default: ["/opt/cni/bin"],
    subject: "Network of pods",
    description: "Directories of the plugins, separated by commas.",
  }),
  option({
    flag: "cni-cache-dir",
    field: "kubeletTs.cniCacheDir",
    option: "cniCacheDir",
    kind: directory,
    default: "/var/lib/kubelet/cni",
    subject: "Network of pods",
    description: "Directory where the results of the plugins are kept, which later releases the networks.",
    defaultText: "<root-dir>/cni",
  }),
] as const;
