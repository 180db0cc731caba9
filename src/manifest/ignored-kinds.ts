/** A kind of objects without effect on one node. */
interface IgnoredKind {
  /** API groups, "" for the core group; `*` at the beginning matches any. */
  groups: readonly string[];
  kinds: readonly string[];
  /** Follows "has no effect on one node: ". */
  note: string;
}

const RBAC = "pods get no tokens, and clients of the local API may do everything or only read: see --token-auth-file";
const ENDPOINTS = "for a fixed address set hostAliases in the pods, or write a Service of type ExternalName";
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
    kinds: ["PodDisruptionBudget"],
    note: "there is no other node that pods could move to: for updates set maxUnavailable in the Deployment",
  },
  {
    groups: ["policy"],
    kinds: ["PodSecurityPolicy"],
    note: "set securityContext in the pods; privileged ones are refused without --allow-privileged",
  },
  {
    groups: ["storage.k8s.io"],
    kinds: ["StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"],
    note: "claims are Docker volumes of the local driver: for another place write a PersistentVolume of hostPath, local or nfs",
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
  { groups: ["", "discovery.k8s.io"], kinds: ["Endpoints", "EndpointSlice"], note: ENDPOINTS },
  { groups: [""], kinds: ["Node"], note: "set --node-labels and --register-with-taints for this node" },
  { groups: [""], kinds: ["PodTemplate"], note: "write a Pod, or a Deployment or Job with this template" },
  {
    groups: ["", "events.k8s.io", "coordination.k8s.io"],
    kinds: ["Event", "Lease"],
    note: "programs write it, and manifests need not hold it: remove it",
  },
  {
    groups: ["apiextensions.k8s.io"],
    kinds: ["CustomResourceDefinition"],
    note: "no operator runs that would read objects of the new kind: write the Deployments or Pods it would make",
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
    note: "the local API calls no other servers: `kubelet-ts validate` checks manifests before they run",
  },
  {
    groups: ["certificates.k8s.io"],
    kinds: ["CertificateSigningRequest"],
    note: "the local API signs only its own certificates: mount a Secret with the certificate",
  },
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
  return `${kind} of ${group} is a custom resource, which has no effect here, because no operator reads it: write the Deployments or Pods that its operator would make`;
}
