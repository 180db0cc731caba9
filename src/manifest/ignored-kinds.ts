/**
 * Kinds that are read without an error, because they often are in the same file as pods: API groups (`core` for the core
 * group) and kinds, and what follows "has no effect on one node: ".
 */
const IGNORED_KINDS: Readonly<Record<string, string>> = {
  "core: Namespace": "namespaces need not be created: set metadata.namespace in the pod",
  "core: ServiceAccount":
    "there are no tokens: mount a Secret with the credentials, and set automountServiceAccountToken: false",
  "rbac.authorization.k8s.io: Role RoleBinding ClusterRole ClusterRoleBinding":
    "pods get no tokens, and clients of the local API may do everything or only read: see --token-auth-file",
  "networking.k8s.io extensions crd.projectcalico.org projectcalico.org cilium.io: NetworkPolicy GlobalNetworkPolicy CiliumNetworkPolicy CiliumClusterwideNetworkPolicy":
    "traffic is not filtered: separate pods with Docker networks (kubelet-ts.io/network), or filter on the host",
  "gateway.networking.k8s.io: Gateway GatewayClass HTTPRoute TCPRoute TLSRoute GRPCRoute UDPRoute":
    "publish its Service with type LoadBalancer or NodePort, or run a reverse proxy as a pod with hostNetwork",
  "autoscaling autoscaling.k8s.io: HorizontalPodAutoscaler VerticalPodAutoscaler":
    "nothing scales on its own: set replicas, and resources of the containers",
  "policy: PodDisruptionBudget":
    "there is no other node that pods could move to: for updates set maxUnavailable in the Deployment",
  "policy: PodSecurityPolicy":
    "set securityContext in the pods; privileged ones are refused without --allow-privileged",
  "storage.k8s.io: StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass":
    "claims are Docker volumes of the local driver: for another place write a PersistentVolume of hostPath, local or nfs",
  "snapshot.storage.k8s.io: VolumeSnapshot VolumeSnapshotClass VolumeSnapshotContent":
    "back up the Docker volume of the claim",
  "core: ResourceQuota LimitRange": "set resources in the pods, and --system-reserved for the node",
  "scheduling.k8s.io: PriorityClass": "set spec.priority in the pod",
  "node.k8s.io: RuntimeClass": "runtimeClassName is the name of a runtime of the engine",
  "core: Node": "set --node-labels and --register-with-taints for this node",
  "core: PodTemplate": "write a Pod, or a Deployment or Job with this template",
  "core events.k8s.io coordination.k8s.io: Event Lease": "programs write it, and manifests need not hold it: remove it",
  "apiextensions.k8s.io: CustomResourceDefinition":
    "no operator runs that would read objects of the new kind: write the Deployments or Pods it would make",
  "apiregistration.k8s.io admissionregistration.k8s.io: APIService MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding":
    "the local API calls no other servers: `kubelet-ts validate` checks manifests before they run",
  "flowcontrol.apiserver.k8s.io: FlowSchema PriorityLevelConfiguration": "the local API has limits of its own",
  "networking.k8s.io: ServiceCIDR IPAddress": "set --service-cluster-ip-range",
  "resource.k8s.io: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice":
    "give the device as a hostPath volume, or GPUs as a limit of nvidia.com/gpu",
  "certificates.k8s.io: CertificateSigningRequest ClusterTrustBundle PodCertificateRequest":
    "the local API signs only its own certificates: mount a Secret with the certificate",
  "monitoring.coreos.com: ServiceMonitor PodMonitor PrometheusRule Probe":
    "scrape /metrics of the read-only port, or the pods themselves",
  "cert-manager.io: Certificate Issuer ClusterIssuer": "mount a Secret with the certificate",
};

/** API groups of Kubernetes, and what is none: groups of custom resources are domains. Other kinds are mistakes. */
const KUBERNETES_GROUP = /^(?:[^.]*|[a-z.-]*\.k8s\.io)$/;

/**
 * Why an object of this kind has no effect on one node; undefined for kinds that are not known to be without effect.
 * @param apiVersion `group/version`, or `v1`
 */
export function describeIgnoredKind(kind: string, apiVersion: string): string | undefined {
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  const singular = kind.endsWith("List") ? kind.slice(0, -4) : kind;
  const known = Object.entries(IGNORED_KINDS).find(([rule]) => {
    const [groups = "", kinds = ""] = rule.split(": ");
    return groups.split(" ").includes(group || "core") && kinds.split(" ").includes(singular);
  });
  if (known) return `${kind} has no effect on one node: ${known[1]}`;
  if (KUBERNETES_GROUP.test(group)) return undefined;
  return `${kind} of ${group} is a custom resource, which has no effect here, because no operator reads it: write the Deployments or Pods that its operator would make`;
}
