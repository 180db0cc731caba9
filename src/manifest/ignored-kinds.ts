/** A kind of objects without effect on one node. */
interface IgnoredKind {
  /** API groups, "" for the core group; `*` at the beginning matches any. */
  groups: readonly string[];
  kinds: readonly string[];
  /** Follows "has no effect on one node: ". */
  note: string;
}

const RBAC = "there is no API server whose access could be granted";
const NETWORKING = ["networking.k8s.io", "extensions"];

/** Kinds that are read without an error, because they often are in the same file as pods. */
const IGNORED_KINDS: readonly IgnoredKind[] = [
  {
    groups: [""],
    kinds: ["Namespace"],
    note: "namespaces need not be created: set metadata.namespace in the pod",
  },
  {
    groups: [""],
    kinds: ["ServiceAccount"],
    note: "there are no tokens: mount a Secret with the credentials, and set automountServiceAccountToken: false",
  },
  {
    groups: ["rbac.authorization.k8s.io"],
    kinds: ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    note: RBAC,
  },
  {
    groups: [...NETWORKING, "crd.projectcalico.org", "projectcalico.org", "cilium.io"],
    kinds: ["NetworkPolicy", "GlobalNetworkPolicy", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"],
    note: "traffic is not filtered: separate pods with Docker networks (kubelet-ts.io/network), or filter on the host",
  },
  {
    groups: NETWORKING,
    kinds: ["Ingress", "IngressClass"],
    note: "publish the pod with hostPort, or run a reverse proxy as a pod with hostNetwork",
  },
  {
    groups: ["gateway.networking.k8s.io"],
    kinds: ["Gateway", "GatewayClass", "HTTPRoute", "TCPRoute", "TLSRoute", "GRPCRoute", "UDPRoute"],
    note: "publish the pod with hostPort, or run a reverse proxy as a pod with hostNetwork",
  },
  {
    groups: ["autoscaling", "autoscaling.k8s.io"],
    kinds: ["HorizontalPodAutoscaler", "VerticalPodAutoscaler"],
    note: "nothing scales on its own: set replicas, and resources of the containers",
  },
  {
    groups: ["policy"],
    kinds: ["PodDisruptionBudget", "PodSecurityPolicy"],
    note: "there are no voluntary disruptions and no admission policies",
  },
  {
    groups: ["storage.k8s.io"],
    kinds: ["StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"],
    note: "claims are Docker volumes of the engine's default driver",
  },
  {
    groups: ["snapshot.storage.k8s.io"],
    kinds: ["VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent"],
    note: "back up the Docker volume of the claim",
  },
  {
    groups: [""],
    kinds: ["ResourceQuota", "LimitRange"],
    note: "set resources in the pods, and --system-reserved for the node",
  },
  { groups: ["scheduling.k8s.io"], kinds: ["PriorityClass"], note: "set spec.priority in the pod" },
  { groups: ["node.k8s.io"], kinds: ["RuntimeClass"], note: "runtimeClassName is the name of a runtime of the engine" },
  { groups: [""], kinds: ["Endpoints", "Event", "Node", "PodTemplate"], note: "nothing reads it" },
  { groups: ["discovery.k8s.io"], kinds: ["EndpointSlice"], note: "nothing reads it" },
  { groups: ["events.k8s.io"], kinds: ["Event"], note: "nothing reads it" },
  { groups: ["coordination.k8s.io"], kinds: ["Lease"], note: "nothing reads it" },
  {
    groups: ["apiextensions.k8s.io"],
    kinds: ["CustomResourceDefinition"],
    note: "there is no API server that could serve the new kind",
  },
  {
    groups: ["apiregistration.k8s.io", "admissionregistration.k8s.io"],
    kinds: [
      "APIService",
      "MutatingWebhookConfiguration",
      "ValidatingWebhookConfiguration",
      "ValidatingAdmissionPolicy",
      "ValidatingAdmissionPolicyBinding",
    ],
    note: "there is no API server that could call it",
  },
  { groups: ["certificates.k8s.io"], kinds: ["CertificateSigningRequest"], note: "there is no API server that signs" },
  {
    groups: ["monitoring.coreos.com"],
    kinds: ["ServiceMonitor", "PodMonitor", "PrometheusRule", "Probe"],
    note: "scrape /metrics of the read-only port, or the pods themselves",
  },
  {
    groups: ["cert-manager.io"],
    kinds: ["Certificate", "Issuer", "ClusterIssuer"],
    note: "mount a Secret with the certificate",
  },
];

/** API groups of Kubernetes: other kinds in them are not custom resources. */
const KUBERNETES_GROUP = /^(?:|apps|batch|autoscaling|policy|extensions|[a-z.-]*\.k8s\.io)$/;

/**
 * Why an object of this kind has no effect on one node; undefined for kinds that are not known to be without effect.
 * @param apiVersion `group/version`, or `v1`
 */
export function describeIgnoredKind(kind: string, apiVersion: string): string | undefined {
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  const singular = kind.endsWith("List") ? kind.slice(0, -4) : kind;
  const known = IGNORED_KINDS.find(({ groups, kinds }) => groups.includes(group) && kinds.includes(singular));
  if (known) return `${kind} has no effect on one node: ${known.note}`;
  if (group === "" || KUBERNETES_GROUP.test(group)) return undefined;
  return `${kind} of ${group} is a custom resource, which has no effect here: no operator reads it`;
}
