import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { RevisionRecord } from "./workload-record.ts";

const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";

/** Annotations that a revision does not inherit. Source: `annotationsToSkip` of deployment_util.go. */
const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deprecated.deployment.rollback.to",
  REVISION_ANNOTATION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
]);

/** Former numbers kept of one revision. */
const MAX_FORMER = 100;

/** The annotations of a workload that its revisions inherit, such as `kubernetes.io/change-cause`. */
export function inheritedAnnotations(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !OWN_ANNOTATIONS.has(name)));
}

/** The former numbers of a revision that becomes the newest one again. */
export const withFormerRevision = ({ former = [], revision }: RevisionRecord): number[] =>
  [...former, revision].slice(-MAX_FORMER);

/** Annotations of a Deployment's ReplicaSet. Source: `SetNewReplicaSetAnnotations`, `SetReplicasAnnotations`. */
export function replicaSetAnnotations(record: RevisionRecord): Record<string, string> {
  const { annotations, former = [], revision, desiredReplicas, maxReplicas } = record;
  return {
    ...annotations,
    [DESIRED_REPLICAS]: String(desiredReplicas),
    [MAX_REPLICAS]: String(maxReplicas),
    [REVISION_ANNOTATION]: String(revision),
    ...(former.length > 0 && { [REVISION_HISTORY]: former.join(",") }),
  };
}
