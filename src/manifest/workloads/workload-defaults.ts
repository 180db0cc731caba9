import type { CronJob, Job, JobSpec } from "../../base/api/job.ts";
import type { Pod } from "../../base/api/pod.ts";
import type {
  DaemonSet,
  Deployment,
  PodTemplateSpec,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from "../../base/api/workload.ts";
import { applyTemplateDefaults as applyPodTemplateDefaults } from "../defaults.ts";

/** As a number that is never reached: "no limit" of the API group `extensions/v1beta1`. */
const NO_LIMIT = 2147483647;

/** Defaults of the spec of a pod template; those of its fields were filled in while decoding. */
function applyTemplateDefaults(template: PodTemplateSpec): void {
  applyPodTemplateDefaults(template as Pod);
  // The API server ignores a template's own identity.
  const { labels, annotations } = template.metadata;
  template.metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
}

/** The groups before apps/v1beta2 select the labels of the template when no selector is given. */
const LEGACY_VERSIONS = ["extensions/v1beta1", "apps/v1beta1"];

/** Source: `pkg/apis/{apps/v1,apps/v1beta1,apps/v1beta2,extensions/v1beta1}/defaults.go`. */
export function applyReplicaDefaults(
  { metadata, spec }: Deployment | ReplicaSet | StatefulSet | DaemonSet,
  apiVersion: string,
): void {
  applyTemplateDefaults(spec.template);
  const { labels } = spec.template.metadata;
  if (!labels || !LEGACY_VERSIONS.includes(apiVersion)) return;
  spec.selector ??= { matchLabels: { ...labels } };
  metadata.labels ??= { ...labels };
}

export function applyDeploymentDefaults(deployment: Deployment, apiVersion: string): void {
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

export function applyReplicationControllerDefaults(controller: ReplicationController): void {
  const { spec, metadata } = controller;
  applyTemplateDefaults(spec.template);
  const { labels } = spec.template.metadata;
  if (!labels) return;
  spec.selector ??= { ...labels };
  metadata.labels ??= { ...labels };
}

export function applyDaemonSetDefaults(set: DaemonSet, apiVersion: string): void {
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
export function applyJobDefaults({ metadata, spec }: Job): void {
  applyJobSpecDefaults(spec);
  const { labels } = spec.template.metadata;
  if (labels) metadata.labels ??= { ...labels };
}

export function applyCronJobDefaults({ spec }: CronJob): void {
  applyJobSpecDefaults(spec.jobTemplate.spec);
  const { labels, annotations } = spec.jobTemplate.metadata;
  spec.jobTemplate.metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
}

function applyJobSpecDefaults(spec: JobSpec): void {
  applyTemplateDefaults(spec.template);
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : NO_LIMIT;
}
