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
