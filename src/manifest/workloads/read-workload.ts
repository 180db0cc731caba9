import * as v from "valibot";
import { CronJobSchema, JobSchema } from "../../base/api/job.ts";
import { matchesSelector } from "../../base/api/match-labels.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import { PersistentVolumeSchema } from "../../base/api/persistent-volume.ts";
import type { LabelSelector, Pod } from "../../base/api/pod.ts";
import { text } from "../../base/api/scalar.ts";
import { ServiceSchema } from "../../base/api/service.ts";
import {
  DaemonSetSchema,
  DeploymentSchema,
  PersistentVolumeClaimSchema,
  type PodTemplateSpec,
  ReplicaSetSchema,
  ReplicationControllerSchema,
  StatefulSetSchema,
} from "../../base/api/workload.ts";
import type { ObjectKind, ObjectOfKind, TypedObject } from "../../base/model/desired-object.ts";
import type { DecodeIssue } from "../decode/decode.ts";
import { decodeAnyCase, decodeExactly, type MiscasedField } from "../decode/field-case.ts";
import { addFieldHomes } from "../decode/field-home.ts";
import { type ObjectShape, objectShapeOf } from "../decode/shape.ts";
import type { FieldPath } from "../field-path.ts";
import { resolveHostPaths } from "../host-paths.ts";
import { renameObject } from "../podman-names.ts";
import { adaptPodmanPod } from "../podman-pod.ts";
import type { SupportNote } from "../support/find-unsupported.ts";
import { findPodNotes } from "../support/pod-notes.ts";
import type { FieldError, FieldErrors } from "../validate/field-errors.ts";
import type { SourceNode } from "../yaml/source-node.ts";
import { validateCronJob, validateJob } from "./validate-job.ts";
import { findServiceNotes, validateService } from "./validate-service.ts";
import { findVolumeNotes, validateClaim, validatePersistentVolume } from "./validate-storage.ts";
import type { ValidateOptions } from "./validate-template.ts";
import {
  validateDaemonSet,
  validateDeployment,
  validateReplicaSet,
  validateReplicationController,
  validateStatefulSet,
} from "./validate-workload.ts";
import {
  applyCronJobDefaults,
  applyDaemonSetDefaults,
  applyDeploymentDefaults,
  applyJobDefaults,
  applyReplicaSetDefaults,
  applyReplicationControllerDefaults,
  applyStatefulSetDefaults,
} from "./workload-defaults.ts";

/** How one kind is read. The first API version is the current one; the others are read with a warning. */
interface KindRules<K extends ObjectKind> {
  versions: readonly [string, ...string[]];
  shape: ObjectShape;
  /** Changes the object in place. */
  applyDefaults: (object: ObjectOfKind[K], apiVersion: string) => void;
  validate: (object: ObjectOfKind[K], path: FieldPath, options: ValidateOptions) => FieldErrors;
}

const typeFields = { apiVersion: v.optional(text), kind: v.optional(text) };
const shapeOfKind = (schema: { entries: v.ObjectEntries }) =>
  objectShapeOf(v.object({ ...typeFields, ...schema.entries }));

const KIND_RULES: { readonly [K in ObjectKind]: KindRules<K> } = {
  Deployment: {
    versions: ["apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"],
    shape: shapeOfKind(DeploymentSchema),
    applyDefaults: applyDeploymentDefaults,
    validate: validateDeployment,
  },
  ReplicaSet: {
    versions: ["apps/v1", "apps/v1beta2", "extensions/v1beta1"],
    shape: shapeOfKind(ReplicaSetSchema),
    applyDefaults: applyReplicaSetDefaults,
    validate: validateReplicaSet,
  },
  ReplicationController: {
    versions: ["v1"],
    shape: shapeOfKind(ReplicationControllerSchema),
    applyDefaults: applyReplicationControllerDefaults,
    validate: validateReplicationController,
  },
  StatefulSet: {
    versions: ["apps/v1", "apps/v1beta2", "apps/v1beta1"],
    shape: shapeOfKind(StatefulSetSchema),
    applyDefaults: applyStatefulSetDefaults,
    validate: validateStatefulSet,
  },
  DaemonSet: {
    versions: ["apps/v1", "apps/v1beta2", "extensions/v1beta1"],
    shape: shapeOfKind(DaemonSetSchema),
    applyDefaults: applyDaemonSetDefaults,
    validate: validateDaemonSet,
  },
  Job: {
    versions: ["batch/v1"],
    shape: shapeOfKind(JobSchema),
    applyDefaults: applyJobDefaults,
    validate: validateJob,
  },
  CronJob: {
    versions: ["batch/v1", "batch/v1beta1", "batch/v2alpha1"],
    shape: shapeOfKind(CronJobSchema),
    applyDefaults: applyCronJobDefaults,
    validate: validateCronJob,
  },
  Service: {
    versions: ["v1"],
    shape: shapeOfKind(ServiceSchema),
    applyDefaults: () => {},
    validate: validateService,
  },
  PersistentVolumeClaim: {
    versions: ["v1"],
    shape: shapeOfKind(PersistentVolumeClaimSchema),
    applyDefaults: () => {},
    validate: validateClaim,
  },
  PersistentVolume: {
    versions: ["v1"],
    shape: shapeOfKind(PersistentVolumeSchema),
    applyDefaults: () => {},
    validate: validatePersistentVolume,
  },
};

/** Kinds of {@link ObjectOfKind}, in the order in which they are documented. */
export const OBJECT_KINDS = Object.keys(KIND_RULES) as ObjectKind[];

export const isObjectKind = (kind: string): kind is ObjectKind => Object.hasOwn(KIND_RULES, kind);

/** The versions in which a kind can be written, the current one first. */
export const versionsOf = (kind: ObjectKind): readonly [string, ...string[]] => KIND_RULES[kind].versions;

interface WorkloadReading {
  desired: TypedObject;
  issues: DecodeIssue[];
  errors: readonly FieldError[];
  notes: SupportNote[];
  miscased: readonly MiscasedField[];
}

interface ReadWorkloadOptions extends ValidateOptions {
  /** Fields without which a pod runs are ignored instead of refused. */
  isLenient?: boolean;
  /** Accept what only Kubernetes refuses of the manifests that podman reads. */
  acceptsPodman?: boolean;
  /** Directory that host paths are relative to; without it relative ones are refused. */
  directory?: string | undefined;
}

/** The pod template of a workload and its path in the document. */
function templateOf({ spec }: ObjectOfKind[ObjectKind], path: FieldPath): { pod: Pod; path: FieldPath } | undefined {
  const specPath = path.child("spec");
  if ("jobTemplate" in spec) {
    const templatePath = specPath.child("jobTemplate").child("spec").child("template");
    return { pod: spec.jobTemplate.spec.template as Pod, path: templatePath };
  }
  return "template" in spec ? { pod: spec.template as Pod, path: specPath.child("template") } : undefined;
}

function adaptObject(kind: ObjectKind, object: ObjectOfKind[ObjectKind], path: FieldPath): SupportNote[] {
  const template = templateOf(object, path);
  if (!template && kind !== "Service") return [];
  const renamed = renameObject(object.metadata, path.child("metadata"));
  if (!template) return renamed;
  return [...renamed, ...addSelector(kind, object, template.pod, path), ...adaptPodmanPod(template.pod, template.path)];
}

/** Kinds that require a selector. */
const SELECTING_KINDS: ReadonlySet<ObjectKind> = new Set(["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]);

/** Podman does not read selectors. */
function addSelector(kind: ObjectKind, object: ObjectOfKind[ObjectKind], pod: Pod, path: FieldPath): SupportNote[] {
  const spec = object.spec as { selector?: LabelSelector };
  if (!SELECTING_KINDS.has(kind) || spec.selector !== undefined) return [];
  const { labels = {} } = pod.metadata;
  if (Object.keys(labels).length === 0) pod.metadata.labels = { app: object.metadata.name ?? "" };
  spec.selector = { matchLabels: { ...pod.metadata.labels } };
  const label = Object.entries(spec.selector.matchLabels ?? {}).map(([name, value]) => `${name}: ${value}`);
  const message = `has no selector, which Kubernetes requires: write selector: {matchLabels: {${label.join(", ")}}}, as it is read here`;
  return [{ code: "ignored", path: path.child("spec"), message }];
}

/**
 * Decodes, defaults and validates one object.
 * @param path of the object in its document
 */
export function readWorkload(
  kind: ObjectKind,
  apiVersion: string,
  node: SourceNode,
  path: FieldPath,
  options: ReadWorkloadOptions,
): WorkloadReading {
  const { isLenient = false, acceptsPodman = false, directory } = options;
  const rules = KIND_RULES[kind] as unknown as KindRules<ObjectKind>;
  const issues: DecodeIssue[] = [];
  const decode = acceptsPodman ? decodeAnyCase : decodeExactly;
  const { decoded, miscased } = decode(node, rules.shape, path, issues);
  addFieldHomes(issues, rules.shape, decoded);
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...rest } = decoded as Record<string, unknown>;
  const object = rest as unknown as ObjectOfKind[ObjectKind];
  rules.applyDefaults(object, apiVersion);
  if (kind !== "PersistentVolume") (object.metadata as ObjectMeta).namespace ??= "default";
  // Before validation, which refuses the names.
  const notes = acceptsPodman ? adaptObject(kind, object, path) : [];
  const template = templateOf(object, path);
  if (template) notes.push(...resolveHostPaths(template.pod, template.path, directory));
  const desired = { kind, object } as TypedObject;
  notes.push(...findWorkloadNotes(desired, path, isLenient));
  const current = rules.versions[0];
  if (apiVersion !== current) {
    const message = `${apiVersion} is no longer served by Kubernetes: write ${current}`;
    notes.push({ code: "ignored", path: path.child("apiVersion"), message });
  }
  return { desired, issues, errors: rules.validate(object, path, options).list, notes, miscased };
}

/** Settings of a workload that have no effect, or another effect, on one node. */
function findWorkloadNotes(desired: TypedObject, path: FieldPath, isLenient: boolean): SupportNote[] {
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
