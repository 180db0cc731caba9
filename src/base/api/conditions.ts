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

/** Whether a condition is there and True. @param status undefined: the object has none yet */
export const hasCondition = (status: WithConditions | null | undefined, wanted: string): boolean =>
  status?.conditions?.some((condition) => condition.type === wanted && condition.status === "True") ?? false;

/**
 * Message of the condition `ManifestLive` when a pod does not run its newest manifest for this reason; undefined when that
 * is not so.
 */
export const notLiveBecause = (status: WithConditions | null | undefined, wanted: "RolledBack" | "EditPending") =>
  status?.conditions?.find(
    ({ type, status: is, reason }) => type === "ManifestLive" && is === "False" && reason === wanted,
  )?.message;
