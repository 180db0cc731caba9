import type { Pod } from "../../base/api/pod.ts";
import { CLUSTER_VOLUME_NAMES } from "../../base/api/volume.ts";
import { hasImageGroups } from "../../base/model/pod.ts";

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

type Extras = Pick<FieldSupport, "quiet" | "strictOnly" | "when">;
const row =
  (level: SupportLevel) =>
  (path: string, note: string, extras: Extras = {}): FieldSupport => ({
    path,
    level,
    note,
    ...extras,
  });
const partly = row("partly");
const ignored = row("ignored");
const refused = row("refused");
const ofContainers = (field: string, toRow: (path: string) => FieldSupport) =>
  [`spec.containers[].${field}`, `spec.initContainers[].${field}`].map(toRow);

const quiet = { quiet: true } as const;
const noScheduler = "there is one node: nothing is scheduled";
const needsCluster =
  "needs a storage driver of a cluster: mount it on the host and use hostPath, or use nfs or a Docker volume (persistentVolumeClaim)";
const noToken =
  "there is no API server that could issue it: mount a Secret document or a hostPath with the credentials";
const onlyWithSelinux =
  "in force where the engine runs with SELinux; elsewhere no kernel enforces them, and they are accepted as by the kubelet";
const BOOKKEEPING =
  "selfLink resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds ownerReferences finalizers managedFields";

/** Fields that are not fully supported. */
export const FIELD_SUPPORT: readonly FieldSupport[] = [
  ignored("metadata.generateName", "nothing generates names: set metadata.name", quiet),
  ...BOOKKEEPING.split(" ").map((name) => ignored(`metadata.${name}`, "bookkeeping of an API server", quiet)),
  ignored("status", "the status is what is observed", quiet),
  ignored(
    "spec.affinity",
    "there is one node: only a required node affinity counts, which must match this node's labels",
  ),
  ignored("spec.topologySpreadConstraints", noScheduler),
  ignored("spec.tolerations", "this node has no taints", { when: isOwnToleration }),
  ignored("spec.schedulerName", noScheduler, { when: (name) => name !== "default-scheduler" }),
  ignored("spec.preemptionPolicy", noScheduler),
  ignored("spec.nodeName", "replaced by the name of this node", quiet),
  ignored("spec.workloadRef", noScheduler),
  refused("spec.schedulingGates", "a static pod is bound to its node", quiet),
  partly(
    "spec.overhead",
    "is added to the requests and limits of the pod and its cgroup; a runtime class does not set it",
  ),
  partly("spec.priority", "orders eviction and shutdown; nothing is preempted"),
  partly(
    "spec.priorityClassName",
    "system-node-critical and system-cluster-critical make a pod critical; other classes are not known here",
    { when: (name) => name !== "" && name !== "system-node-critical" && name !== "system-cluster-critical" },
  ),
  partly("spec.readinessGates", "the pod becomes Ready when a client has set the conditions in its status", {
    when: (gates) => (gates as unknown[]).length > 0,
  }),
  ignored("spec.automountServiceAccountToken", "only a cluster issues service account tokens", quiet),
  refused(
    "spec.serviceAccountName",
    "there is no API server that could issue a token: remove it or set automountServiceAccountToken: false, and mount a Secret document where credentials are needed",
    { strictOnly: true, when: (name, pod) => name !== "default" && pod.spec.automountServiceAccountToken !== false },
  ),
  refused("spec.serviceAccount", "the old name of serviceAccountName", quiet),
  partly(
    "spec.runtimeClassName",
    "the name of a runtime that the Docker engine knows; other names are refused when the pod starts",
  ),
  partly(
    "spec.hostUsers",
    "false needs an engine with userns-remap (Docker maps users per engine, not per pod); refused otherwise when the pod starts",
    { when: (hostUsers) => hostUsers === false },
  ),
  refused("spec.os", "this node runs Linux", { when: isWindows }),
  refused("spec.resourceClaims", "dynamic resource allocation needs an API server"),
  refused("spec.ephemeralContainers", "not part of a manifest in Kubernetes either", quiet),
  partly("spec.resources", "cpu and memory, through the cgroup of the pod"),
  refused(
    "spec.securityContext.supplementalGroupsPolicy",
    "for Strict set runAsGroup: Docker adds the groups of the image's /etc/group where it is told no group",
    { when: (policy, { spec }) => policy === "Strict" && hasImageGroups(spec) },
  ),
  ignored(
    "spec.securityContext.seLinuxChangePolicy",
    "volumes of the pod's own are relabeled file by file where the engine runs with SELinux (Recursive)",
    quiet,
  ),
  partly("spec.securityContext.seLinuxOptions", onlyWithSelinux),
  ...ofContainers("securityContext.seLinuxOptions", (path) => partly(path, onlyWithSelinux)),
  ignored("spec.securityContext.windowsOptions", "this node runs Linux"),
  ...ofContainers("securityContext.windowsOptions", (path) => ignored(path, "this node runs Linux")),
  ...ofContainers("volumeDevices", (path) =>
    refused(path, "block volumes need a cluster: use a hostPath of type BlockDevice"),
  ),
  ...ofContainers("volumeMounts[].recursiveReadOnly", (path) =>
    partly(path, "Enabled needs Docker API 1.44; refused otherwise when the pod starts"),
  ),
  ...ofContainers("resources.claims", (path) => refused(path, "dynamic resource allocation needs an API server")),
  ...ofContainers("resources.limits", (path) =>
    partly(
      path,
      "cpu, memory, ephemeral-storage, huge pages and nvidia.com/gpu; others only where the engine has CDI devices of that name",
      { when: hasOtherResources },
    ),
  ),
  ...ofContainers("resizePolicy", (path) =>
    partly(path, "an edit of the manifest that touches only resources is what resizes"),
  ),
  partly(
    "spec.volumes[].persistentVolumeClaim",
    "bound to a PersistentVolume of the manifests; where none fits, a Docker volume named after the claim",
  ),
  partly(
    "spec.volumes[].image",
    "a mount of the image from Docker API 1.48 on; older engines: unpacked into a directory, once for each pod",
  ),
  partly("spec.volumes[].emptyDir.medium", "must be Memory, HugePages or HugePages-SIZE, or the pod waits", {
    when: (medium) => !/^(?:|Memory|HugePages(?:-.*)?)$/.test(medium as string),
  }),
  refused("spec.volumes[].gitRepo", "gone from Kubernetes too: clone in an init container into an emptyDir"),
  ...CLUSTER_VOLUME_NAMES.map((name) => refused(`spec.volumes[].${name}`, needsCluster)),
  refused(
    "spec.volumes[].ephemeral",
    "there is no provisioner: use emptyDir, or a Docker volume (persistentVolumeClaim)",
  ),
  refused("spec.volumes[].projected.sources[].serviceAccountToken", noToken),
  refused("spec.volumes[].projected.sources[].clusterTrustBundle", noToken),
  refused("spec.volumes[].projected.sources[].podCertificate", noToken),
];

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
