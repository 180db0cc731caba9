import type { Pod } from "../base/api/pod.ts";
import { ARCHITECTURE } from "../base/host/node-info.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { FieldPath } from "../manifest/field.ts";
import { admitPods } from "../plan/admission.ts";
import { computeNodeLabels, describeIgnoredLabels, matchesNode, matchesOnlyNode } from "../plan/node-affinity.ts";
import { findNetworkMistake } from "../plan/pod-network.ts";
import { computeSysctlNamespace, findForbiddenSysctl, toDottedSysctl } from "../plan/sysctls.ts";

/** The options of a node that decide which pods it runs, without its capacity and its engine. */
export type NodeRules = { nodeName: string; comparesAllLabels: boolean } & Pick<
  KubeletOptions,
  "allowPrivileged" | "allowedUnsafeSysctls" | "maxPods" | "nodeLabels"
>;

/** A pod, or the pods of a workload. */
export interface NodeCandidate {
  /** For a workload one pod of its template, with a UID of its own. */
  pod: Pod;
  /** Path of the pod or the template in its document. */
  path: FieldPath;
  /** Pods that the workload wants at once; absent for a pod. */
  replicas?: { count: number; path: FieldPath };
  /** No pod is made where the node does not match. */
  isDaemon?: true;
  /** It is made from the template of a workload. */
  isFromTemplate?: true;
  /** It comes from a URL. */
  isFetched?: true;
}

/** A pod that the node refuses; `path` is the field that causes it. */
interface NodeRefusal {
  path: FieldPath;
  message: string;
  /** The pods of the workload run, or some of them. */
  isWarning?: true;
}

/**
 * Pods that a node with these options refuses to start, by the rules of the running kubelet. Rules that depend on the
 * machine or the engine (cpu, memory, runtimes) are not applied.
 * @param pods valid pods with their identity, and their paths in the document
 */
export function findNodeRefusals(candidates: readonly NodeCandidate[], rules: NodeRules): (NodeRefusal | undefined)[] {
  const labels = computeNodeLabels(rules.nodeName, ARCHITECTURE, rules.nodeLabels);
  const pods = candidates.filter(({ pod, isDaemon }) => !isDaemon || matchesNode(pod, rules.nodeName, labels));
  const own = new Map(pods.map((one) => [one, findOwnRefusal(one.pod, one.path, rules)]));
  const { rejections } = admitPods({
    pods: pods
      .filter((one) => own.get(one) === undefined)
      .flatMap((one) => [one, ...toReplicas(one, rules.maxPods).map((pod) => ({ ...one, pod }))])
      .map(({ pod, isFetched, isFromTemplate }) => ({
        pod,
        source: isFetched ? ("http" as const) : ("file" as const),
        origin: "",
        revision: "",
        ...(isFromTemplate && { isFromTemplate }),
      })),
    running: new Set<PodUID>(),
    held: new Map(),
    allocations: new Map(),
    node: { name: rules.nodeName, labels, maxPods: rules.maxPods, comparesAllLabels: rules.comparesAllLabels },
  });
  return candidates.map((one) => {
    const refusal = own.get(one);
    if (refusal) return refusal;
    const { pod, path, replicas } = one;
    const rejection = rejections.get(pod.metadata.uid!);
    if (!rejection) {
      const ignored = one.isFromTemplate && !one.isDaemon ? matchesOnlyNode(pod, rules.nodeName, labels).ignored : [];
      if (ignored.length > 0) {
        const message = describeIgnoredLabels(ignored);
        return { path: fieldOfRejection("NodeAffinity", pod, path), message, isWarning: true };
      }
      const refused = toReplicas(one, rules.maxPods).filter(({ metadata }) => rejections.has(metadata.uid!)).length;
      if (!replicas || refused === 0) return undefined;
      const beyond = Math.max(0, replicas.count - 1 - rules.maxPods);
      const message = `${refused + beyond} of ${replicas.count} pods are refused: the node takes ${rules.maxPods} in all (--max-pods)`;
      return { path: replicas.path, message, isWarning: true };
    }
    const message = rejection.message.replace(/^Pod (?:Predicate \S+ failed: )?/, "");
    return { path: fieldOfRejection(rejection.reason, pod, path), message };
  });
}

/** The other pods of a workload, which only count here: ports that they share are reported by the template. */
function toReplicas({ pod, replicas }: NodeCandidate, maxPods: number): Pod[] {
  const { containers, initContainers = [], ...spec } = pod.spec;
  const withoutPorts = <T extends object>(container: T) => ({ ...container, ports: [] });
  const quiet = { ...spec, containers: containers.map(withoutPorts), initContainers: initContainers.map(withoutPorts) };
  const count = Math.min(maxPods, (replicas?.count ?? 1) - 1);
  return Array.from({ length: Math.max(0, count) }, (_, index) => ({
    ...pod,
    metadata: { ...pod.metadata, uid: `${pod.metadata.uid}/${index}` },
    spec: quiet,
  }));
}

function findOwnRefusal(pod: Pod, path: FieldPath, rules: NodeRules): NodeRefusal | undefined {
  const { spec } = pod;
  const specPath = path.child("spec");
  const sysctl = findForbiddenSysctl(pod, rules.allowedUnsafeSysctls);
  if (sysctl) {
    const name = /"([^"]+)"/.exec(sysctl)?.[1];
    const index = spec.securityContext.sysctls?.findIndex((item) => item.name === name) ?? -1;
    const at = specPath.child("securityContext").child("sysctls");
    const isAllowable = name !== undefined && computeSysctlNamespace(toDottedSysctl(name)) !== undefined;
    const isListed = sysctl.endsWith("not whitelisted");
    const message = isAllowable && isListed ? `${sysctl}; --allowed-unsafe-sysctls=${name} permits it` : sysctl;
    return { path: index < 0 ? at : at.index(index).child("name"), message };
  }
  const network = findNetworkMistake(pod);
  if (network)
    return { path: path.child("metadata").child("annotations"), message: `${network.field}: ${network.why}` };
  if (rules.allowPrivileged) return undefined;
  for (const list of ["initContainers", "containers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      if (!container.securityContext?.privileged) continue;
      return {
        path: specPath.child(list).index(index).child("securityContext").child("privileged"),
        message: "privileged containers are not allowed on this node; --allow-privileged=true permits them",
      };
    }
  }
  return undefined;
}

function fieldOfRejection(reason: string, pod: Pod, path: FieldPath): FieldPath {
  const specPath = path.child("spec");
  if (reason === "NodeAffinity") return specPath.child(pod.spec.nodeSelector ? "nodeSelector" : "affinity");
  if (reason !== "NodePorts") return specPath;
  for (const [index, container] of pod.spec.containers.entries()) {
    const port = (container.ports ?? []).findIndex(({ hostPort }) => hostPort !== undefined && hostPort > 0);
    if (port >= 0) return specPath.child("containers").index(index).child("ports").index(port).child("hostPort");
  }
  return specPath;
}
