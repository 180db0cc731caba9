import { matchesSelector } from "../../base/api/match-labels.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { PodTemplateSpec } from "../../base/api/workload.ts";
import type { TypedObject } from "../../base/model/desired-object.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "../support/find-unsupported.ts";
import { findPodNotes } from "../support/pod-notes.ts";
import { findServiceNotes } from "./validate-service.ts";
import { findVolumeNotes } from "./validate-storage.ts";

/** Settings of a workload that have no effect, or another effect, on one node. */
export function findWorkloadNotes(desired: TypedObject, path: FieldPath, isLenient: boolean): SupportNote[] {
  const specPath = path.child("spec");
  if (desired.kind === "CronJob") {
    const templatePath = specPath.child("jobTemplate").child("spec").child("template");
    return findTemplateNotes(desired.object.spec.jobTemplate.spec.template, templatePath, isLenient);
  }
  if (desired.kind === "Service") return findServiceNotes(desired.object, path);
  if (desired.kind === "PersistentVolume") return findVolumeNotes(desired.object, path);
  if (desired.kind === "PersistentVolumeClaim") return [];
  const { template } = desired.object.spec;
  const notes = findTemplateNotes(template, specPath.child("template"), isLenient);
  if (desired.kind === "DaemonSet" || desired.kind === "Job") return notes;
  const { replicas } = desired.object.spec;
  if (replicas > 1) notes.push(...findReplicaNotes(replicas, template, specPath));
  if (desired.kind === "Deployment" && desired.object.spec.strategy.type === "RollingUpdate" && replicas > 0) {
    const port = hostPortOf(template);
    if (port !== undefined) {
      const message = `the pods hold host port ${port}, which an old and a new pod cannot hold together: an update stops the old pod before the new one starts`;
      notes.push({ code: "ignored", path: specPath.child("strategy"), message });
    }
  }
  return notes;
}

/** Notes on the pods of a template. */
const findTemplateNotes = (template: PodTemplateSpec, path: FieldPath, isLenient: boolean): SupportNote[] =>
  findPodNotes(template as Pod, path, isLenient);

function findReplicaNotes(replicas: number, template: PodTemplateSpec, specPath: FieldPath): SupportNote[] {
  const notes: SupportNote[] = [];
  const port = hostPortOf(template);
  if (port !== undefined) {
    const message = `${replicas} pods ask for host port ${port}: one of them gets it, the others are refused; set replicas: 1 or remove hostPort`;
    notes.push({ code: "ignored", path: specPath.child("replicas"), message });
  }
  if (hasOwnAntiAffinity(template)) {
    const message = `the pod anti-affinity keeps replicas on different nodes: there is one node, and all ${replicas} run on it`;
    notes.push({ code: "ignored", path: specPath.child("replicas"), message });
  }
  return notes;
}

/** The first port of the node that every pod of the template asks for. */
function hostPortOf({ spec }: PodTemplateSpec): number | undefined {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const ports = [...spec.containers, ...sidecars].flatMap((container) => container.ports ?? []);
  return ports.find(({ hostPort }) => hostPort !== undefined && hostPort > 0)?.hostPort;
}

/** Whether a required anti-affinity forbids two pods of the template on one node. */
function hasOwnAntiAffinity({ metadata, spec }: PodTemplateSpec): boolean {
  const terms = spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.some(({ labelSelector }) => labelSelector && matchesSelector(labelSelector, metadata.labels));
}
