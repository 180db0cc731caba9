import type { ObjectMeta } from "../api/meta.ts";
import type { DesiredPod } from "./desired-state.ts";

/**
 * The Docker volume of a claim: its own name in namespace `default`, so that an existing volume is used, else (and for
 * one character, which Docker refuses) `<namespace>_<claim>`, which cannot be a Kubernetes name.
 */
export const claimVolumeOf = (namespace: string, claimName: string): string =>
  namespace === "default" && claimName.length > 1 ? claimName : `${namespace}_${claimName}`;

/** Whether a pod has a volume of a claim of its namespace. */
export function usesClaim(
  { pod: { metadata, spec }, claims = {} }: Pick<DesiredPod, "pod" | "claims">,
  { namespace = "default", name }: ObjectMeta,
): boolean {
  if ((metadata.namespace ?? "default") !== namespace) return false;
  const isMounted = spec.volumes?.some(({ persistentVolumeClaim: claim }) => claim?.claimName === name) === true;
  return isMounted || Object.values(claims).some((claim) => claim === name);
}
