import type { Pod } from "../../base/api/pod.ts";
import { CLUSTER_VOLUME_NAMES } from "../../base/api/volume-drivers.ts";

/** Level of support of a field. `partly`: some values or effects; the note says which. */
type SupportLevel = "supported" | "partly" | "ignored" | "refused";

export interface FieldSupport {
  /** Path from the pod, `[]` after a list: `spec.containers[].volumeDevices`. Includes all fields below it. */
  path: string;
  level: SupportLevel;
  /** Reason and alternative; shown in docs/fields.md and, unless `quiet`, in the finding. */
  note: string;
  /** No finding, because almost every exported manifest has the field or another rule reports it. */
  quiet?: true;
  /** A refused field is an error only where `Strictness` is `strict`; otherwise the pod runs without its effect. */
  strictOnly?: true;
  /** Limits the row to certain values. */
  when?: (value: unknown, pod: Pod) => boolean;
}

const needsCluster =
  "needs a storage driver of a cluster: mount it on the host and use hostPath, or use nfs or a Docker volume (persistentVolumeClaim)";

const refusedVolume = (name: string, note = needsCluster): FieldSupport => ({
  path: `spec.volumes[].${name}`,
  level: "refused",
  note,
});

const ofContainers = (field: string, support: Omit<FieldSupport, "path">): FieldSupport[] =>
  ["containers", "initContainers"].map((list) => ({ path: `spec.${list}[].${field}`, ...support }));

const noScheduler = "there is one node: nothing is scheduled";
const noToken =
  "there is no API server that could issue it: mount a Secret document or a hostPath with the credentials";

const onlyWithSelinux =
  "in force where the engine runs with SELinux; elsewhere no kernel enforces them, and they are accepted as by the kubelet";

/** Fields that are not fully supported. */
export const FIELD_SUPPORT: readonly FieldSupport[] = [
  { path: "metadata.generateName", level: "ignored", note: "nothing generates names: set metadata.name", quiet: true },
  ...["selfLink", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"].map(bookkeeping),
  ...["deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"].map(bookkeeping),
  { path: "status", level: "ignored", note: "the status is what is observed", quiet: true },

  {
    path: "spec.affinity",
    level: "ignored",
    note: "there is one node: only a required node affinity counts, which must match this node's labels",
  },
  { path: "spec.topologySpreadConstraints", level: "ignored", note: noScheduler },
  { path: "spec.tolerations", level: "ignored", note: "this node has no taints", when: isOwnToleration },
  {
    path: "spec.schedulerName",
    level: "ignored",
    note: noScheduler,
    when: (name) => name !== "default-scheduler",
  },
  { path: "spec.preemptionPolicy", level: "ignored", note: noScheduler },
  { path: "spec.nodeName", level: "ignored", note: "replaced by the name of this node", quiet: true },
  { path: "spec.workloadRef", level: "ignored", note: noScheduler },
  { path: "spec.schedulingGates", level: "refused", note: "a static pod is bound to its node", quiet: true },
  {
    path: "spec.overhead",
    level: "partly",
    note: "is added to the requests and limits of the pod and its cgroup; a runtime class does not set it",
  },
  { path: "spec.priority", level: "partly", note: "orders eviction and shutdown; nothing is preempted" },
  {
    path: "spec.priorityClassName",
    level: "partly",
    note: "system-node-critical and system-cluster-critical make a pod critical; other classes are not known here",
  },
  {
    path: "spec.readinessGates",
    level: "partly",
    note: "nothing here sets the conditions: the pod does not become Ready",
  },
  {
    path: "spec.enableServiceLinks",
    level: "ignored",
    note: "without a cluster, names of Services are in the hosts file and none of their variables in the environment",
    quiet: true,
  },
  {
    path: "spec.automountServiceAccountToken",
    level: "ignored",
    note: "only a cluster issues service account tokens",
    quiet: true,
  },
  {
    path: "spec.serviceAccountName",
    level: "refused",
    note: "there is no API server that could issue a token: remove it or set automountServiceAccountToken: false, and mount a Secret document where credentials are needed",
    strictOnly: true,
    when: (name, pod) => name !== "default" && pod.spec.automountServiceAccountToken !== false,
  },
  {
    path: "spec.serviceAccount",
    level: "refused",
    note: "the old name of serviceAccountName",
    quiet: true,
  },
  {
    path: "spec.runtimeClassName",
    level: "partly",
    note: "the name of a runtime that the Docker engine knows; other names are refused when the pod starts",
  },
  {
    path: "spec.hostUsers",
    level: "partly",
    note: "false needs an engine with userns-remap (Docker maps users per engine, not per pod); refused otherwise when the pod starts",
  },
  { path: "spec.os", level: "refused", note: "this node runs Linux", when: isWindows },
  { path: "spec.resourceClaims", level: "refused", note: "dynamic resource allocation needs an API server" },
  {
    path: "spec.ephemeralContainers",
    level: "refused",
    note: "not part of a manifest in Kubernetes either",
    quiet: true,
  },
  { path: "spec.resources", level: "partly", note: "cpu and memory, through the cgroup of the pod" },

  {
    path: "spec.securityContext.supplementalGroupsPolicy",
    level: "refused",
    note: "Docker always adds the groups of the image's /etc/group: only Merge is possible",
    when: (policy) => policy === "Strict",
  },
  {
    path: "spec.securityContext.seLinuxChangePolicy",
    level: "ignored",
    note: "volumes of the pod's own are relabelled file by file where the engine runs with SELinux (Recursive)",
    quiet: true,
  },
  { path: "spec.securityContext.seLinuxOptions", level: "partly", note: onlyWithSelinux },
  ...ofContainers("securityContext.seLinuxOptions", { level: "partly", note: onlyWithSelinux }),
  { path: "spec.securityContext.windowsOptions", level: "ignored", note: "this node runs Linux" },
  ...ofContainers("securityContext.windowsOptions", { level: "ignored", note: "this node runs Linux" }),

  ...ofContainers("volumeDevices", {
    level: "refused",
    note: "block volumes need a cluster: use a hostPath of type BlockDevice",
  }),
  ...ofContainers("volumeMounts[].recursiveReadOnly", {
    level: "partly",
    note: "Enabled needs Docker API 1.44; refused otherwise when the pod starts",
  }),
  ...ofContainers("resources.claims", { level: "refused", note: "dynamic resource allocation needs an API server" }),
  ...ofContainers("resources.limits", {
    level: "partly",
    note: "cpu, memory, ephemeral-storage, huge pages and nvidia.com/gpu; others only where the engine has CDI devices of that name",
    when: hasOtherResources,
  }),
  ...ofContainers("resizePolicy", {
    level: "partly",
    note: "an edit of the manifest that touches only resources is what resizes",
  }),

  {
    path: "spec.volumes[].persistentVolumeClaim",
    level: "partly",
    note: "bound to a PersistentVolume of the manifests; where none fits, a Docker volume named after the claim",
  },
  {
    path: "spec.volumes[].image",
    level: "partly",
    note: "a mount of the image from Docker API 1.48 on; older engines: unpacked into a directory, once for each pod",
  },
  refusedVolume("gitRepo", "gone from Kubernetes too: clone in an init container into an emptyDir"),
  ...CLUSTER_VOLUME_NAMES.map((name) => refusedVolume(name)),
  refusedVolume("ephemeral", "there is no provisioner: use emptyDir, or a Docker volume (persistentVolumeClaim)"),
  { path: "spec.volumes[].projected.sources[].serviceAccountToken", level: "refused", note: noToken },
  { path: "spec.volumes[].projected.sources[].clusterTrustBundle", level: "refused", note: noToken },
  { path: "spec.volumes[].projected.sources[].podCertificate", level: "refused", note: noToken },
];

function bookkeeping(name: string): FieldSupport {
  return { path: `metadata.${name}`, level: "ignored", note: "bookkeeping of an API server", quiet: true };
}

/** Whether there is a toleration other than that of every static pod. */
function isOwnToleration(tolerations: unknown): boolean {
  const list = tolerations as readonly { key?: string; operator?: string; effect?: string }[];
  return list.some(({ key, operator, effect }) => key !== undefined || operator !== "Exists" || effect !== "NoExecute");
}

function isWindows(os: unknown): boolean {
  return (os as { name: string }).name === "windows";
}

function hasOtherResources(limits: unknown): boolean {
  const known = ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"];
  return Object.keys(limits as object).some((name) => !known.includes(name) && !name.startsWith("hugepages-"));
}
