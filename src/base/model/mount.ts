/**
 * One mount of one container, ready for the engine: the path on the host exists.
 * `bind`: a host path. `volume`: a named Docker volume (PVC, nfs). `image`: an image mounted read-only (API 1.48).
 */
export interface Mount {
  type: "bind" | "volume" | "image";
  /** Host path, Docker volume name, or image reference. */
  source: string;
  /** `mountPath` in the container. */
  target: string;
  readOnly: boolean;
  /** Kubernetes' `mountPropagation`; absent = None. */
  propagation?: "HostToContainer" | "Bidirectional";
  /** Kubernetes' `recursiveReadOnly`; absent = Disabled. */
  recursiveReadOnly?: "IfPossible" | "Enabled";
  /** Files of the pod's own, which get its SELinux label where the engine separates by labels; never a hostPath's. */
  relabel?: true;
  /** Path inside a named volume or an image. */
  subPath?: string;
}
