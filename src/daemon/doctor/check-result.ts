export type CheckStatus = "ok" | "warn" | "fail";

/** Outcome of one check. */
export interface CheckResult {
  /** Lower case words: `engine`, `cgroups`, `port 10255`. */
  name: string;
  status: CheckStatus;
  /** The finding. */
  message: string;
  /** Command or setting that fixes it; absent when there is nothing to fix. */
  fix?: string;
}

export const isFailure = ({ status }: CheckResult): boolean => status === "fail";

/** A failure that may keep a kubelet from starting: manifests and images do not. */
export const isReasonNotToStart = ({ status, name }: CheckResult): boolean =>
  status === "fail" && name !== "manifests" && !name.startsWith("image ");

export const ok = (name: string, message: string): CheckResult => ({ name, status: "ok", message });
export const warn = (name: string, message: string, fix?: string): CheckResult => ({
  name,
  status: "warn",
  message,
  ...(fix && { fix }),
});
export const fail = (name: string, message: string, fix?: string): CheckResult => ({
  name,
  status: "fail",
  message,
  ...(fix && { fix }),
});
