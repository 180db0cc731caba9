/**
 * Name of the Docker volume of a claim: the claim's own name in namespace `default`, so that an existing volume is used;
 * `<namespace>_<claim>` elsewhere (`_` is in no Kubernetes name, so names do not clash).
 */
export const claimVolumeOf = (namespace: string, claimName: string): string =>
  namespace === "default" ? claimName : `${namespace}_${claimName}`;
