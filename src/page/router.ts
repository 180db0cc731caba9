/** A view, as the address names it below `#`. */
export type View =
  | { kind: "overview" }
  | { kind: "node" }
  | { kind: "apply" }
  | { kind: "pod"; uid: string; tab: PodTab };

export const POD_TABS = ["overview", "logs", "shell", "processes", "events", "manifest"] as const;
export type PodTab = (typeof POD_TABS)[number];

export function parseView(hash: string): View {
  const [kind, uid, tab] = hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (kind === "node" || kind === "apply") return { kind };
  if (kind === "pod" && uid) return { kind, uid, tab: POD_TABS.find((known) => known === tab) ?? "overview" };
  return { kind: "overview" };
}

export const podAddress = (uid: string, tab: PodTab = "overview"): string =>
  `#/pod/${encodeURIComponent(uid)}${tab === "overview" ? "" : `/${tab}`}`;
