import type { PodRow } from "../../src/page/pod-row.ts";

/** A ready pod of the overview. @param more fields that differ */
export const podRow = (name: string, more: Partial<PodRow> = {}): PodRow => ({
  uid: name,
  namespace: "default",
  name,
  status: "Running",
  ready: 1,
  total: 1,
  isReady: true,
  restarts: 0,
  lastRestart: 0,
  createdAt: 1,
  owner: "",
  source: "",
  why: "",
  notice: "",
  ip: "",
  ...more,
});
