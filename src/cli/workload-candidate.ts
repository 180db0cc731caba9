import type { Pod } from "../api/pod.ts";
import type { PodTemplateSpec } from "../api/workload.ts";
import type { FieldPath } from "../manifest/field-path.ts";
import type { TypedObject } from "../model/desired-object.ts";
import type { NodeCandidate } from "./validate-node.ts";

/** The pods that a workload wants at once; undefined for other objects, and for a workload without pods. */
export function toCandidate(desired: TypedObject, path: FieldPath, uid: string): NodeCandidate | undefined {
  if (desired.kind === "Service" || desired.kind === "PersistentVolume" || desired.kind === "PersistentVolumeClaim") {
    return undefined;
  }
  const { metadata } = desired.object;
  const toPod = (template: PodTemplateSpec): Pod =>
    ({
      ...template,
      metadata: { ...template.metadata, name: metadata.name, namespace: metadata.namespace, uid },
    }) as Pod;
  const specPath = path.child("spec");
  if (desired.kind === "CronJob") {
    const { template } = desired.object.spec.jobTemplate.spec;
    return { pod: toPod(template), path: specPath.child("jobTemplate").child("spec").child("template") };
  }
  const pod = toPod(desired.object.spec.template);
  const templatePath = specPath.child("template");
  if (desired.kind === "DaemonSet") return { pod, path: templatePath, isDaemon: true };
  if (desired.kind === "Job") {
    const { parallelism = 1, completions = parallelism } = desired.object.spec;
    const replicas = { count: Math.min(parallelism, completions), path: specPath.child("parallelism") };
    return replicas.count > 0 ? { pod, path: templatePath, replicas } : undefined;
  }
  const replicas = { count: desired.object.spec.replicas, path: specPath.child("replicas") };
  return replicas.count > 0 ? { pod, path: templatePath, replicas } : undefined;
}
