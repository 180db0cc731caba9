/**
 * `syntax`: not readable as YAML/JSON. `invalid`: wrong in Kubernetes too. `unsupported`: legal in Kubernetes, cannot be
 * done here. `unknown`: no such field. `ignored`: has no meaning on one node (a warning only).
 */
type FindingCode = "syntax" | "invalid" | "unsupported" | "unknown" | "ignored";

/** One defect of a manifest, or a remark, with its position. */
export interface Finding {
  code: FindingCode;
  severity: "error" | "warning";
  /** File path, URL (masked) or `-`. */
  file: string;
  /** 1-based number of the document in its stream. */
  document: number;
  /** 1-based; of the value, or of the nearest parent when the field is missing. */
  line: number;
  column: number;
  /** e.g. `spec.containers[0].ports[0].containerPort`; "" for the whole document. */
  field: string;
  /** Upstream's ErrorType where there is one, e.g. `FieldValueRequired`. */
  type?: string;
  /** Names the defect, the value found and a correct value. Never a secret value. */
  message: string;
}
