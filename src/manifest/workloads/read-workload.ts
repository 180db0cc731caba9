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
  type Deployment,
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
import { Field, type FieldError } from "../validate/field.ts";
import type { ValidateOptions } from "../validate/pod.ts";
import type { SourceNode } from "../yaml/source-node.ts";
import { validateCronJob, validateJob } from "./validate-job.ts";
import { findServiceNotes, validateService } from "./validate-service.ts";
import { findVolumeNotes, validateClaim, validatePersistentVolume } from "./validate-storage.ts";
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

/** How one kind is read, and everything in which it differs from others here. */
interface KindRules<K extends ObjectKind> {
  /** The first is the current one; the others are read with a warning. */
  versions: readonly [string, ...string[]];
  schema: { entries: v.ObjectEntries };
  /** Changes the object in place. */
  applyDefaults?: (object: ObjectOfKind[K], apiVersion: string) => void;
  validate: (object: Field<ObjectOfKind[K]>, options: ValidateOptions) => void;
  /** Settings without effect, or with another effect, on one node; besides those of its pods. */
  findNotes?: (object: ObjectOfKind[K], path: FieldPath) => SupportNote[];
  /** Fields that lead to the template of its pods. */
  templatePath?: readonly string[];
  /** The selector is required by Kubernetes, and not read by podman. */
  needsSelector?: true;
  /** Its name becomes a DNS label where podman accepts others; implied by a template. */
  isRenamed?: true;
  /** Only referred to by name: names that podman accepts and Kubernetes refuses are kept. */
  keepsName?: true;
  /** In no namespace. */
  isOfCluster?: true;
}

const TEMPLATE = ["spec", "template"];

const KIND_RULES: { readonly [K in ObjectKind]: KindRules<K> } = {
  Deployment: {
    versions: ["apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"],
    schema: DeploymentSchema,
    applyDefaults: applyDeploymentDefaults,
    validate: validateDeployment,
    findNotes: findDeploymentNotes,
    templatePath: TEMPLATE,
    needsSelector: true,
  },
  ReplicaSet: {
    versions: ["apps/v1", "apps/v1beta2", "extensions/v1beta1"],
    schema: ReplicaSetSchema,
    applyDefaults: applyReplicaSetDefaults,
    validate: validateReplicaSet,
    findNotes: findReplicaNotes,
    templatePath: TEMPLATE,
    needsSelector: true,
  },
  ReplicationController: {
    versions: ["v1"],
    schema: ReplicationControllerSchema,
    applyDefaults: applyReplicationControllerDefaults,
    validate: validateReplicationController,
    findNotes: findReplicaNotes,
    templatePath: TEMPLATE,
  },
  StatefulSet: {
    versions: ["apps/v1", "apps/v1beta2", "apps/v1beta1"],
    schema: StatefulSetSchema,
    applyDefaults: applyStatefulSetDefaults,
    validate: validateStatefulSet,
    findNotes: findReplicaNotes,
    templatePath: TEMPLATE,
    needsSelector: true,
  },
  DaemonSet: {
    versions: ["apps/v1", "apps/v1beta2", "extensions/v1beta1"],
    schema: DaemonSetSchema,
    applyDefaults: applyDaemonSetDefaults,
    validate: validateDaemonSet,
    templatePath: TEMPLATE,
    needsSelector: true,
  },
  Job: {
    versions: ["batch/v1"],
    schema: JobSchema,
    applyDefaults: applyJobDefaults,
    validate: validateJob,
    templatePath: TEMPLATE,
  },
  CronJob: {
    versions: ["batch/v1", "batch/v1beta1", "batch/v2alpha1"],
    schema: CronJobSchema,
    applyDefaults: applyCronJobDefaults,
    validate: validateCronJob,
    templatePath: ["spec", "jobTemplate", "spec", "template"],
  },
  Service: {
    versions: ["v1"],
    schema: ServiceSchema,
    validate: validateService,
    findNotes: findServiceNotes,
    isRenamed: true,
  },
  PersistentVolumeClaim: {
    versions: ["v1"],
    schema: PersistentVolumeClaimSchema,
    validate: validateClaim,
    keepsName: true,
  },
  PersistentVolume: {
    versions: ["v1"],
    schema: PersistentVolumeSchema,
    validate: validatePersistentVolume,
    findNotes: findVolumeNotes,
    isOfCluster: true,
  },
};

const typeFields = { apiVersion: v.optional(text), kind: v.optional(text) };

/** Kinds of {@link ObjectOfKind}, in the order in which they are documented. */
export const OBJECT_KINDS = Object.keys(KIND_RULES) as ObjectKind[];

export const isObjectKind = (kind: string): kind is ObjectKind => Object.hasOwn(KIND_RULES, kind);

/** The versions in which a kind can be written, the current one first. */
export const versionsOf = (kind: ObjectKind): readonly [string, ...string[]] => KIND_RULES[kind].versions;

/** Whether Kubernetes requires a selector of objects of a kind. */
export const needsSelector = (kind: string): boolean => isObjectKind(kind) && KIND_RULES[kind].needsSelector === true;

export const keepsName = (kind: ObjectKind): boolean => KIND_RULES[kind].keepsName === true;

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
function templateOf(kind: ObjectKind, object: object, path: FieldPath): { pod: Pod; path: FieldPath } | undefined {
  const { templatePath } = KIND_RULES[kind];
  if (!templatePath) return undefined;
  const pod = templatePath.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], object);
  return { pod: pod as Pod, path: templatePath.reduce((at, name) => at.child(name), path) };
}

function adaptObject(kind: ObjectKind, object: ObjectOfKind[ObjectKind], path: FieldPath): SupportNote[] {
  const template = templateOf(kind, object, path);
  if (!template && !KIND_RULES[kind].isRenamed) return [];
  const renamed = renameObject(object.metadata, path.child("metadata"));
  if (!template) return renamed;
  return [...renamed, ...addSelector(kind, object, template.pod, path), ...adaptPodmanPod(template.pod, template.path)];
}

/** Podman does not read selectors. */
function addSelector(kind: ObjectKind, object: ObjectOfKind[ObjectKind], pod: Pod, path: FieldPath): SupportNote[] {
  const spec = object.spec as { selector?: LabelSelector };
  if (!KIND_RULES[kind].needsSelector || spec.selector !== undefined) return [];
  const { labels = {} } = pod.metadata;
  if (Object.keys(labels).length === 0) pod.metadata.labels = { app: object.metadata.name ?? "" };
  spec.selector = { matchLabels: { ...pod.metadata.labels } };
  const label = Object.entries(spec.selector.matchLabels ?? {}).map(([name, value]) => `${name}: ${value}`);
  const message = `has no selector, which Kubernetes requires: write selector: {matchLabels: {${label.join(", ")}}}, as it is read here`;
  return [{ code: "ignored", path: path.child("spec"), message }];
}

const shapes = new Map<ObjectKind, ObjectShape>();

function shapeOfKind(kind: ObjectKind): ObjectShape {
  const shape = shapes.get(kind) ?? objectShapeOf(v.object({ ...typeFields, ...KIND_RULES[kind].schema.entries }));
  shapes.set(kind, shape);
  return shape;
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
  const shape = shapeOfKind(kind);
  const { decoded, miscased } = decode(node, shape, path, issues);
  addFieldHomes(issues, shape, decoded);
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...rest } = decoded as Record<string, unknown>;
  const object = rest as unknown as ObjectOfKind[ObjectKind];
  rules.applyDefaults?.(object, apiVersion);
  if (!rules.isOfCluster) (object.metadata as ObjectMeta).namespace ??= "default";
  // Before validation, which refuses the names.
  const notes = acceptsPodman ? adaptObject(kind, object, path) : [];
  const template = templateOf(kind, object, path);
  if (template) notes.push(...resolveHostPaths(template.pod, template.path, directory));
  const desired = { kind, object } as TypedObject;
  if (template) notes.push(...findPodNotes(template.pod, template.path, isLenient));
  notes.push(...(rules.findNotes?.(object, path) ?? []));
  const current = rules.versions[0];
  if (apiVersion !== current) {
    const message = `${apiVersion} is no longer served by Kubernetes: write ${current}`;
    notes.push({ code: "ignored", path: path.child("apiVersion"), message });
  }
  const field = new Field(object, path);
  rules.validate(field, options);
  return { desired, issues, errors: field.errors, notes, miscased };
}

function findDeploymentNotes(deployment: Deployment, path: FieldPath): SupportNote[] {
  const { replicas, strategy, template } = deployment.spec;
  const port = hostPortOf(template);
  const notes = findReplicaNotes(deployment, path);
  if (port === undefined || replicas === 0 || strategy.type !== "RollingUpdate") return notes;
  const message = `the pods hold host port ${port}, which an old and a new pod cannot hold together: an update stops the old pod before the new one starts`;
  return [...notes, { code: "ignored", path: path.child("spec").child("strategy"), message }];
}

function findReplicaNotes(
  { spec: { replicas, template } }: { spec: { replicas: number; template: PodTemplateSpec } },
  path: FieldPath,
): SupportNote[] {
  if (replicas < 2) return [];
  const at = path.child("spec").child("replicas");
  const notes: SupportNote[] = [];
  const port = hostPortOf(template);
  if (port !== undefined) {
    const message = `${replicas} pods ask for host port ${port}: one of them gets it, the others are refused; set replicas: 1 or remove hostPort`;
    notes.push({ code: "ignored", path: at, message });
  }
  if (hasOwnAntiAffinity(template)) {
    const message = `the pod anti-affinity keeps replicas on different nodes: there is one node, and all ${replicas} run on it`;
    notes.push({ code: "ignored", path: at, message });
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
