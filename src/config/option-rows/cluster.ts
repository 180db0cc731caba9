import { boolean, duration, file, integer, MAX_INT32, oneOf, text } from "../kinds/scalar-kinds.ts";
import { inapplicable, OURS, option, options, UPSTREAM } from "../option-row.ts";

/** Options of a node of a cluster: without --kubeconfig they have no effect. */
export const CLUSTER_OPTIONS = options("Cluster", {
  kubeconfig: option("kubeconfig", OURS, file, "", {
    description:
      "Kubeconfig file of an API server: this machine becomes a node of its cluster. Without it kubelet-ts runs standalone.",
  }),
  bootstrapKubeconfig: option("bootstrap-kubeconfig", OURS, file, "", {
    oldFlag: "experimental-bootstrap-kubeconfig",
    description:
      "Kubeconfig with a bootstrap token: requests a client certificate and writes the file of --kubeconfig, if that file has no certificate that is valid.",
  }),
  registerNode: option("register-node", UPSTREAM, boolean, true, {
    description: "Create the Node object; with false an administrator has to create it.",
  }),
  registerSchedulable: option("register-schedulable", OURS, boolean, true, {
    description: "With false a new Node object is unschedulable.",
  }),
  cloudProvider: option("cloud-provider", OURS, oneOf("", "external"), "", {
    description:
      "external: a cloud controller manager sets the addresses of the node and removes its uninitialized taint.",
  }),
  providerId: option("provider-id", "providerID", text, "", { description: "spec.providerID of the Node object." }),
  nodeStatusUpdateFrequencyMs: option("node-status-update-frequency", UPSTREAM, duration(1000), 10_000, {
    description: "Interval at which the node status is computed; a change is sent at once.",
  }),
  nodeStatusReportFrequencyMs: option(undefined, UPSTREAM, duration(1000), 300_000, {
    description:
      "Interval at which an unchanged node status is sent; by default nodeStatusUpdateFrequency where a file sets that.",
  }),
  nodeLeaseDurationSeconds: option(undefined, "nodeLeaseDurationSeconds", integer(1, MAX_INT32), 40, {
    description: "Duration of the node's Lease, which is renewed four times within it.",
  }),
  nodeStatusMaxImages: option("node-status-max-images", UPSTREAM, integer(-1, MAX_INT32, "-1 = all"), 50, {
    description: "Images in the node status, the largest ones.",
  }),
  kubeApiQps: option("kube-api-qps", "kubeAPIQPS", integer(0, MAX_INT32, "0 = no limit"), 50, {
    description: "Requests per second to the API server.",
  }),
  kubeApiBurst: option("kube-api-burst", "kubeAPIBurst", integer(0, MAX_INT32), 100, {
    description: "Requests to the API server that may be sent at once after a quiet time.",
  }),
  enableControllerAttachDetach: option("enable-controller-attach-detach", UPSTREAM, boolean, true, {
    description: "Annotate the Node object, so that the controller manager attaches volumes; kubelet-ts attaches none.",
  }),
  rotateCertificates: option("rotate-certificates", UPSTREAM, boolean, false, {
    description: "Request a new client certificate before the present one expires.",
  }),
  rotateServerCertificates: option("rotate-server-certificates", "serverTLSBootstrap", boolean, false, {
    description:
      "Request the serving certificate of the authenticated port from the cluster; its requests have to be approved.",
  }),
});

export const CLUSTER_OTHERS = [
  ...inapplicable(
    "each ConfigMap and Secret that a pod of this node names is watched",
    "|configMapAndSecretChangeDetectionStrategy",
    ["Watch"],
  ),
  ...inapplicable(
    "JSON is the only format that kubelet-ts uses with API servers",
    "kube-api-content-type|contentType",
    ["application/json", "application/vnd.kubernetes.protobuf"],
  ),
];
