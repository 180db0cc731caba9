import { DEFAULT_FILTER, type RowFilter } from "./store.ts";

/** A view, as the address names it below `#`. Every view has an address that another reader can be given. */
export type View =
  | { kind: "overview"; filter: RowFilter }
  | { kind: "node" }
  | { kind: "apply" }
  | { kind: "pod"; namespace: string; name: string; tab: PodTab };

export const POD_TABS = ["overview", "logs", "shell", "processes", "events", "manifest"] as const;
export type PodTab = (typeof POD_TABS)[number];

export interface PodName {
  namespace: string;
  name: string;
}

/** An address that names no view is the overview. */
export function parseView(hash: string): View {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [kind, namespace, name, tab] = path.split("/").map(decode);
  if (kind === "node" || kind === "apply") return { kind };
  if (kind === "pods" && namespace && name) {
    return { kind: "pod", namespace, name, tab: POD_TABS.find((known) => known === tab) ?? "overview" };
  }
  return { kind: "overview", filter: parseFilter(new URLSearchParams(query)) };
}

/** The one-time token of a link of `kubelet-ts page`, `#token=…`; undefined in other addresses. Some programs write `=` as `%3D`. */
export const readToken = (hash: string): string | undefined => /^#\/?token(?:=|%3D)(.*)$/i.exec(hash)?.[1];

/** The address holds the name and not the UID: an edited manifest makes a new pod of the same name. */
export function podAddress({ namespace, name }: PodName, tab: PodTab = "overview"): string {
  const path = `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return tab === "overview" ? path : `${path}/${tab}`;
}

export function overviewAddress({ text, onlyNotReady, isGrouped, sort, descending }: RowFilter): string {
  const query = new URLSearchParams({
    ...(text !== "" && { filter: text }),
    ...(onlyNotReady && { show: "not-ready" }),
    ...(isGrouped && { group: "namespace" }),
    ...((sort !== DEFAULT_FILTER.sort || descending) && { sort: descending ? `-${sort}` : sort }),
  });
  return query.size > 0 ? `#/?${query}` : "#/";
}

function parseFilter(query: URLSearchParams): RowFilter {
  const sort = query.get("sort") ?? "";
  return {
    text: query.get("filter") ?? "",
    onlyNotReady: query.get("show") === "not-ready",
    isGrouped: query.get("group") === "namespace",
    sort: sort.replace(/^-/, "") || DEFAULT_FILTER.sort,
    descending: sort.startsWith("-"),
  };
}

/** Whether nothing that was typed or collected in this view is lost by loading the page again. Pure. */
export const mayReload = (view: View): boolean =>
  view.kind === "overview" ||
  view.kind === "node" ||
  (view.kind === "pod" && view.tab !== "logs" && view.tab !== "shell" && view.tab !== "manifest");

/** Addresses are typed and cut off by people: what is not valid is taken as it is. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
