/** RFC 3339 in UTC with whole seconds. Source: `metav1.Time`. */
export const toApiTime = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;
