/** The verb and resource of a request. Source: apiserver's `RequestInfo`. */
export interface RequestInfo {
  group: string;
  version: string;
  /** undefined: of all namespaces, or of a kind without one. */
  namespace: string | undefined;
  plural: string;
  /** "" for the whole collection. */
  name: string;
  /** "" for the object itself. */
  subresource: string;
  /** The path after the subresource `proxy`, without a leading slash. */
  rest: string;
}

/** @returns undefined for paths that name no resource */
export function parseRequestInfo(path: string): RequestInfo | undefined {
  const parts = path.replace(/\/$/, "").split("/").slice(1);
  const [root] = parts;
  let group = "";
  if (root === "apis") group = parts[1] ?? "";
  else if (root !== "api") return undefined;
  const [version, ...steps] = parts.slice(root === "api" ? 1 : 2);
  // Watches of old: /api/v1/watch/namespaces/…
  if (steps[0] === "watch") steps.shift();
  if (version === undefined || steps.length === 0 || steps.includes("")) return undefined;
  let namespace: string | undefined;
  if (steps[0] === "namespaces" && steps.length > 2 && !["status", "finalize"].includes(steps[2]!)) {
    namespace = steps[1];
    steps.splice(0, 2);
  }
  const [plural = "", name = "", subresource = "", ...rest] = steps;
  if (rest.length > 0 && subresource !== "proxy") return undefined;
  return { group, version, namespace, plural, name, subresource, rest: rest.join("/") };
}
