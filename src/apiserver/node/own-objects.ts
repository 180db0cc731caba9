import { SERVICE_NAME_LABEL } from "../../base/api/endpoints.ts";
import type { WorkloadObject } from "../../base/model/desired-state.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { familyOf } from "../../base/text/ip-range.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { objectUid } from "../../controllers/workload-records.ts";
import { isLoopback } from "../../server/request-handler.ts";
import { IS_DEFAULT_CLASS } from "../kinds/volume-kinds.ts";
import type { ApiObject } from "../object-store.ts";

/**
 * Service `default/kubernetes` of a cluster, which clients and test suites look for, with its Endpoints and EndpointSlice.
 * It is shown, and leads nowhere: it has no cluster IP, no DNS name and no environment variables in pods. An API on a
 * loopback address is an endpoint of the node that is not ready: pods do not reach it. Source: the API server's `reconcilers`.
 */
export function toApiService(
  { localApiAddress: address, localApiPort: port }: Pick<KubeletOptions, "localApiAddress" | "localApiPort">,
  node: { name: string; ip: string },
  creationTimestamp: string,
): WorkloadObject[] {
  if (port === 0) return [];
  const isReady = !isLoopback(address);
  const ip = isReady && !["0.0.0.0", "::"].includes(address) ? address : node.ip;
  const ports = [{ name: "https", port, protocol: "TCP" }];
  const [name, namespace] = ["kubernetes", "default"];
  const toObject = (kind: string, labels: Record<string, string>, more: Partial<WorkloadObject>): WorkloadObject => {
    const uid = objectUid(node.name, kind, namespace, name);
    return { apiVersion: "v1", kind, metadata: { name, namespace, uid, creationTimestamp, labels }, ...more };
  };
  const spec = { type: "ClusterIP", clusterIP: "None", ports: ports.map((it) => ({ ...it, targetPort: port })) };
  const subsets = [{ [isReady ? "addresses" : "notReadyAddresses"]: [{ ip }], ports }];
  const endpoints = [{ addresses: [ip], conditions: { ready: isReady } }];
  const slice = { apiVersion: "discovery.k8s.io/v1", addressType: familyOf(ip) ?? "IPv4", endpoints, ports };
  return [
    toObject("Service", { component: "apiserver", provider: "kubernetes" }, { spec, status: { loadBalancer: {} } }),
    toObject("Endpoints", { "endpointslice.kubernetes.io/skip-mirror": "true" }, { subsets }),
    toObject("EndpointSlice", { [SERVICE_NAME_LABEL]: name }, slice),
  ];
}

export const LEASES = "leases.coordination.k8s.io";
export const LEASE_NAMESPACE = "kube-node-lease";
const LEASE_SECONDS = 40;

/** The Lease of the node, renewed four times in its duration. @returns undefined while it is not due */
export function renewNodeLease(name: string, live: ApiObject | undefined, now: Date): ApiObject | undefined {
  const { renewTime } = (live?.spec ?? {}) as { renewTime?: string };
  if (now.getTime() - Date.parse(renewTime ?? "") < LEASE_SECONDS * 250) return undefined;
  const namespace = LEASE_NAMESPACE;
  const uid = objectUid(name, "Lease", namespace, name);
  const owner = { apiVersion: "v1", kind: "Node", name, uid: name };
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { creationTimestamp: toApiTime(now), ...live?.metadata, name, namespace, uid, ownerReferences: [owner] },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: LEASE_SECONDS,
      renewTime: now.toISOString().replace("Z", "000Z"),
    },
  };
}

export const STORAGE_CLASSES = "storageclasses.storage.k8s.io";
export const DEFAULT_CLASS = "standard";

/** The class that claims have in effect: a Docker volume, whose data outlives the claim. */
export const toDefaultClass = (nodeName: string, creationTimestamp: string): ApiObject => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: {
    name: DEFAULT_CLASS,
    uid: objectUid(nodeName, "StorageClass", "", DEFAULT_CLASS),
    creationTimestamp,
    annotations: { [IS_DEFAULT_CLASS]: "true" },
  },
  provisioner: "kubelet-ts.io/docker-volume",
  reclaimPolicy: "Retain",
  volumeBindingMode: "Immediate",
});
