/** Kind of source; `kubernetes.io/config.source`. `api`: submitted to the local API server. */
export type SourceKind = "file" | "http" | "api";

/** Where a pod is written down. */
export interface ManifestLocation {
  /** Path or URL (masked). */
  file: string;
  /** 1-based number of the document in its stream. */
  document?: number;
  /** 1-based line at which the document begins. */
  line?: number;
}

/** Source and revision of a desired object. */
export interface ManifestOrigin {
  source: SourceKind;
  /** For users: the file path or URL (masked), with document number where it helps. */
  origin: string;
  /** Absent for sources that have no text, e.g. an API. */
  location?: ManifestLocation;
  /** Identifies the source in checkpoints and state files: 32 hex digits, or a word. Absent: not known. */
  sourceId?: string;
  /** 32 hex digits of the canonical object, of a pod `kubernetes.io/config.hash`; every edit with a meaning changes it. */
  revision: string;
  /** The manifest itself says `dnsPolicy: ClusterFirst` of the pod or template, which is also the default. */
  asksForClusterDns?: true;
}
