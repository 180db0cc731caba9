/**
 * Name of the Docker volume of a claim: the claim's own name in namespace `default`, so that an existing volume is used;
 * `<namespace>_<claim>` elsewhere (`_` is in no Kubernetes name, so names do not clash), and for a name of one character,
 * which Docker refuses.
 */
export const claimVolumeOf = (namespace: string, claimName: string): string =>
  namespace === "default" && claimName.length > 1 ? claimName : `${namespace}_${claimName}`;
