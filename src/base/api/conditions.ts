/** The conditions of an object's status, of any kind. */
interface WithConditions {
  conditions?:
    | readonly {
        type?: string | undefined;
        status?: string | undefined;
        reason?: string | undefined;
        message?: string | undefined;
      }[]
    | null
    | undefined;
}

/** The condition of a pod or workload that does not follow its newest manifest, or not with its resources; undefined: it does. */
export function notLive(status: WithConditions | null | undefined) {
  const find = (wanted: string, value: string) =>
    status?.conditions?.find(({ type, status: is }) => type === wanted && is === value);
  return find("ManifestLive", "False") ?? find("PodResizePending", "True");
}

/** Whether a condition is there and True. @param status undefined: the object has none yet */
export const hasCondition = (status: WithConditions | null | undefined, wanted: string): boolean =>
  status?.conditions?.some((condition) => condition.type === wanted && condition.status === "True") ?? false;
