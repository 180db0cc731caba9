/**
 * The Docker volume of a claim: its own name in namespace `default`, so that an existing volume is used, else (and for
 * one character, which Docker refuses) `<namespace>_<claim>`, which cannot be a Kubernetes name.
 */
export const claimVolumeOf = (namespace: string, claimName: string): string =>
  namespace === "default" && claimName.length > 1 ? claimName : `${namespace}_${claimName}`;
