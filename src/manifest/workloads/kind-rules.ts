import type * as v from "valibot";
import { EndpointSliceSchema, EndpointsSchema } from "../../base/api/endpoints.ts";
import { IngressClassSchema, IngressSchema } from "../../base/api/ingress.ts";
import { type CronJob, CronJobSchema, fillJobDefaults, type Job, JobSchema } from "../../base/api/job.ts";
import { matchesSelector, type ObjectMeta } from "../../base/api/meta.ts";
import { PersistentVolumeSchema } from "../../base/api/persistent-volume.ts";
import type { Pod } from "../../base/api/pod.ts";
import { type Service, ServiceSchema } from "../../base/api/service.ts";
import {
  type DaemonSet,
  DaemonSetSchema,
  type Deployment,
  DeploymentSchema,
  PersistentVolumeClaimSchema,
  type PodTemplateSpec,
  type ReplicaSet,
  ReplicaSetSchema,
  type ReplicationController,
  ReplicationControllerSchema,
  type StatefulSet,
  StatefulSetSchema,
} from "../../base/api/workload.ts";
import type { ObjectKind, ObjectOfKind } from "../../base/model/desired-state.ts";
import { neverComes } from "../../base/text/cron-schedule.ts";
import { applyTemplateDefaults as applyPodTemplateDefaults } from "../defaults.ts";
import type { Field, SupportNote } from "../field.ts";
import type { ValidateOptions } from "../validate/pod.ts";
import type { MapNode } from "../yaml/source-node.ts";
import {
  convertIngress,
  findIngressClassNotes,
  findIngressNotes,
  validateIngress,
  validateIngressClass,
} from "./validate-ingress.ts";
import {
  findServiceNotes,
  findSliceNotes,
  validateEndpointSlice,
  validateEndpoints,
  validateService,
} from "./validate-service.ts";
import { findClaimNotes, findVolumeNotes, validateClaim, validatePersistentVolume } from "./validate-storage.ts";
import {
  validateCronJob,
  validateDaemonSet,
  validateDeployment,
  validateJob,
  validateReplicaSet,
  validateReplicationController,
  validateStatefulSet,
} from "./validate-workload.ts";

/** How one kind is read, and everything in which it differs from others here. */
interface KindRules<K extends ObjectKind> {
  /** The first is the current one; the others are read with a warning. */
  versions: readonly [string, ...string[]];
  /** The text of an earlier version as the current one has it. */
  convert?: (node: MapNode) => MapNode;
  schema: { entries: v.ObjectEntries };
  /** Changes the object in place. */
  applyDefaults?: (object: ObjectOfKind[K], apiVersion: string) => void;
  validate: (object: Field<ObjectOfKind[K]>, options: ValidateOptions) => void;
  /** Settings without effect, or with another effect, on one node; besides those of its pods. */
  findNotes?: (object: Field<ObjectOfKind[K]>) => SupportNote[];
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
    applyDefaults: applyReplicaDefaults,
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
    findNotes: (cronJob) => {
      const { schedule, timeZone } = cronJob.value.spec;
      return neverComes(schedule, timeZone)
        ? [cronJob.field("spec").field("schedule").note("no day is in this month: it never runs")]
        : [];
    },
    templatePath: ["spec", "jobTemplate", "spec", "template"],
  },
  Service: {
    versions: ["v1"],
    schema: ServiceSchema,
    applyDefaults: applyServiceDefaults,
    validate: validateService,
    findNotes: findServiceNotes,
    isRenamed: true,
  },
  Endpoints: { versions: ["v1"], schema: EndpointsSchema, validate: validateEndpoints },
  EndpointSlice: {
    versions: ["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"],
    schema: EndpointSliceSchema,
    validate: validateEndpointSlice,
    findNotes: findSliceNotes,
  },
  Ingress: {
    versions: ["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"],
    convert: convertIngress,
    schema: IngressSchema,
    validate: validateIngress,
    findNotes: findIngressNotes,
  },
  IngressClass: {
    versions: ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"],
    schema: IngressClassSchema,
    validate: validateIngressClass,
    findNotes: findIngressClassNotes,
    isOfCluster: true,
  },
  PersistentVolumeClaim: {
    versions: ["v1"],
    schema: PersistentVolumeClaimSchema,
    validate: validateClaim,
    findNotes: findClaimNotes,
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

/** Kinds of {@link ObjectOfKind}, in the order in which they are documented. */
export const OBJECT_KINDS = Object.keys(KIND_RULES) as ObjectKind[];

export const isObjectKind = (kind: string): kind is ObjectKind => Object.hasOwn(KIND_RULES, kind);

/** The versions in which a kind can be written, the current one first. */
export const versionsOf = (kind: ObjectKind): readonly [string, ...string[]] => KIND_RULES[kind].versions;

/** Whether Kubernetes requires a selector of objects of a kind. */
export const needsSelector = (kind: string): boolean => isObjectKind(kind) && KIND_RULES[kind].needsSelector === true;

/** How objects of a kind are read. */
export const rulesOf = (kind: ObjectKind) => KIND_RULES[kind] as unknown as KindRules<ObjectKind>;

/** The pod template of a workload. */
export function templateOf(kind: ObjectKind, object: Field<object>): Field<Pod> | undefined {
  const { templatePath } = KIND_RULES[kind];
  const step = (field: Field, name: string) => (field as Field<Record<string, unknown>>).field(name);
  return templatePath?.reduce(step, object as Field) as Field<Pod> | undefined;
}

function findDeploymentNotes(deployment: Field<Deployment>): SupportNote[] {
  const { replicas, strategy, template } = deployment.value.spec;
  const port = hostPortOf(template);
  const notes = findReplicaNotes(deployment);
  if (port === undefined || replicas === 0 || strategy.type !== "RollingUpdate") return notes;
  const message = `the pods hold host port ${port}, which an old and a new pod cannot hold together: an update stops the old pod before the new one starts`;
  return [...notes, deployment.field("spec").field("strategy").note(message)];
}

function findReplicaNotes(owner: Field<{ spec: { replicas: number; template: PodTemplateSpec } }>): SupportNote[] {
  const { replicas, template } = owner.value.spec;
  if (replicas < 2) return [];
  const field = owner.field("spec").field("replicas");
  const port = hostPortOf(template);
  const ofPort = `${replicas} pods ask for host port ${port}: one of them gets it, the others are refused; set replicas: 1 or remove hostPort`;
  const ofAffinity = `the pod anti-affinity keeps replicas on different nodes: there is one node, and all ${replicas} run on it`;
  return [
    ...(port === undefined ? [] : [field.note(ofPort)]),
    ...(hasOwnAntiAffinity(template) ? [field.note(ofAffinity)] : []),
  ];
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

/** As a number that is never reached: "no limit" of the API group `extensions/v1beta1`. */
const NO_LIMIT = 2147483647;

/** Defaults of the spec of a pod template; those of its fields were filled in while decoding. */
function applyTemplateDefaults(template: PodTemplateSpec): void {
  applyPodTemplateDefaults(template as Pod);
  dropIdentity(template);
}

/** The API server ignores a template's own identity. */
function dropIdentity(template: { metadata: ObjectMeta }): void {
  const { labels, annotations } = template.metadata;
  template.metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
}

/** The groups before apps/v1beta2 select the labels of the template when no selector is given. */
const LEGACY_VERSIONS = ["extensions/v1beta1", "apps/v1beta1"];

/** Source: `pkg/apis/{apps/v1,apps/v1beta1,apps/v1beta2,extensions/v1beta1}/defaults.go`. */
function applyReplicaDefaults(
  { metadata, spec }: Deployment | ReplicaSet | StatefulSet | DaemonSet,
  apiVersion: string,
): void {
  applyTemplateDefaults(spec.template);
  const { labels } = spec.template.metadata;
  if (!labels || !LEGACY_VERSIONS.includes(apiVersion)) return;
  spec.selector ??= { matchLabels: { ...labels } };
  metadata.labels ??= { ...labels };
}

function applyDeploymentDefaults(deployment: Deployment, apiVersion: string): void {
  const { spec } = deployment;
  applyReplicaDefaults(deployment, apiVersion);
  const isExtensions = apiVersion === "extensions/v1beta1";
  if (spec.strategy.type === "RollingUpdate") {
    spec.strategy.rollingUpdate ??= {};
    spec.strategy.rollingUpdate.maxSurge ??= isExtensions ? 1 : "25%";
    spec.strategy.rollingUpdate.maxUnavailable ??= isExtensions ? 1 : "25%";
  }
  const historyLimit = isExtensions ? NO_LIMIT : apiVersion === "apps/v1beta1" ? 2 : 10;
  spec.revisionHistoryLimit ??= historyLimit;
  spec.progressDeadlineSeconds ??= isExtensions ? NO_LIMIT : 600;
}

/** Without affinity its settings mean nothing: a client that switches it off need not remove them. */
function applyServiceDefaults({ spec }: Service): void {
  if (spec.sessionAffinity !== "ClientIP") delete spec.sessionAffinityConfig;
}

function applyReplicationControllerDefaults(controller: ReplicationController): void {
  const { spec, metadata } = controller;
  applyTemplateDefaults(spec.template);
  const { labels } = spec.template.metadata;
  if (!labels) return;
  spec.selector ??= { ...labels };
  metadata.labels ??= { ...labels };
}

function applyStatefulSetDefaults(set: StatefulSet, apiVersion: string): void {
  applyReplicaDefaults(set, apiVersion);
  const { rollingUpdate } = set.spec.updateStrategy;
  if (rollingUpdate) rollingUpdate.partition ??= 0;
}

function applyDaemonSetDefaults(set: DaemonSet, apiVersion: string): void {
  const { spec } = set;
  applyReplicaDefaults(set, apiVersion);
  if (spec.updateStrategy.type === "RollingUpdate") {
    spec.updateStrategy.rollingUpdate ??= {};
    const { rollingUpdate } = spec.updateStrategy;
    rollingUpdate.maxSurge ??= 0;
    rollingUpdate.maxUnavailable ??= rollingUpdate.maxSurge === 0 ? 1 : 0;
  }
}

/** Source: `pkg/apis/batch/v1/defaults.go`. */
/** The labels of its pods are shown as its own by the API, which knows those that its uid determines. */
function applyJobDefaults({ spec }: Job): void {
  applyTemplateDefaults(spec.template);
  fillJobDefaults(spec);
}

function applyCronJobDefaults({ spec }: CronJob): void {
  applyTemplateDefaults(spec.jobTemplate.spec.template);
  dropIdentity(spec.jobTemplate);
}
