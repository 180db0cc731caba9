import type { Pod } from "../../api/pod.ts";
import type { Deployment, PodTemplateSpec, ReplicaSet, ReplicationController } from "../../api/workload.ts";
import { applyPodDefaults } from "../defaults.ts";

/** As a number that is never reached: "no limit" of the API group `extensions/v1beta1`. */
const NO_LIMIT = 2147483647;

/** Defaults of the spec of a pod template; those of its fields were filled in while decoding. */
export function applyTemplateDefaults(template: PodTemplateSpec): void {
  applyPodDefaults(template as Pod);
  // The API server ignores a template's own identity.
  const { labels, annotations } = template.metadata;
  template.metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
}

/** Source: `pkg/apis/{apps/v1,apps/v1beta1,apps/v1beta2,extensions/v1beta1}/defaults.go`. */
export function applyDeploymentDefaults(deployment: Deployment, apiVersion: string): void {
  const { spec } = deployment;
  applyTemplateDefaults(spec.template);
  if (hasDefaultSelector(apiVersion)) applyLegacyLabels(deployment);
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

export function applyReplicaSetDefaults(replicaSet: ReplicaSet, apiVersion: string): void {
  applyTemplateDefaults(replicaSet.spec.template);
  if (hasDefaultSelector(apiVersion)) applyLegacyLabels(replicaSet);
}

export function applyReplicationControllerDefaults(controller: ReplicationController): void {
  const { spec, metadata } = controller;
  applyTemplateDefaults(spec.template);
  const { labels } = spec.template.metadata;
  if (!labels) return;
  spec.selector ??= { ...labels };
  metadata.labels ??= { ...labels };
}

/** The groups before apps/v1beta2 select the labels of the template when no selector is given. */
export const hasDefaultSelector = (apiVersion: string): boolean =>
  apiVersion === "extensions/v1beta1" || apiVersion === "apps/v1beta1";

function applyLegacyLabels({ metadata, spec }: Deployment | ReplicaSet): void {
  const { labels } = spec.template.metadata;
  if (!labels) return;
  spec.selector ??= { matchLabels: { ...labels } };
  metadata.labels ??= { ...labels };
}
