/** The conditions of an object's status, of any kind. */
interface WithConditions {
  conditions?: readonly { type?: string | undefined; status?: string | undefined }[] | null | undefined;
}

/** Whether a condition is there and True. @param status undefined: the object has none yet */
export const hasCondition = (status: WithConditions | null | undefined, wanted: string): boolean =>
  status?.conditions?.some((condition) => condition.type === wanted && condition.status === "True") ?? false;
