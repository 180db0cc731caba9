import { ApiError, forbidden } from "./api-error.ts";
import type { ApiRequest, ApiUser, RequestInfo } from "./api-request.ts";
import type { Verb } from "./resource-definition.ts";

/** The requested access to a resource. */
interface Access {
  verb: string;
  group: string;
  resource: string;
  /** "" for the object itself. */
  subresource: string;
}

/** Subresources that lead into containers or to the node. */
const INTO_CONTAINERS = new Set(["exec", "attach", "portforward", "proxy", "ephemeralcontainers", "eviction"]);
const READING = new Set(["get", "list", "watch"]);
/** Reviews of the client's own permissions, allowed for everyone. */
const SELF_REVIEWS = new Set(["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"]);

/**
 * `admin` may do everything; `view` may read everything except the inside of containers, and sees Secrets without their data.
 */
export function mayDo({ role }: ApiUser, { verb, resource, subresource }: Access): boolean {
  if (role === "admin") return true;
  if (role !== "view") return false;
  if (SELF_REVIEWS.has(resource)) return true;
  return READING.has(verb) && !INTO_CONTAINERS.has(subresource);
}

/** Verbs by method, for resources that are neither listed nor watched. */
export const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
  GET: "get",
  HEAD: "get",
};

/** The verb of a request for a resource. Source: apiserver's RequestInfo. */
export function verbOf({ method, query, path }: ApiRequest, { name }: RequestInfo): Verb {
  switch (method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default: {
      const wantsWatch = isOn(query.get("watch")) || /^\/apis?\/([^/]+\/)?[^/]+\/watch\//.test(path);
      if (wantsWatch) return "watch";
      return name === "" ? "list" : "get";
    }
  }
}

/** @throws ApiError 403 */
export function authorize(
  { user }: ApiRequest,
  { group, plural, subresource, name, namespace }: RequestInfo,
  verb: string,
): void {
  const access: Access = { verb, group, resource: plural, subresource };
  if (mayDo(user, access)) return;
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const scope = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
  throw forbidden(
    { group, plural },
    name,
    `User "${user.name}" cannot ${verb} resource "${resource}" in API group "${group}" ${scope}`,
  );
}

/** For paths that are not resources. Source: apiserver's response to a forbidden path. @throws ApiError 403 */
export function authorizePath({ user, path, method }: ApiRequest): void {
  if (user.role !== undefined && (method === "GET" || method === "HEAD" || user.role === "admin")) return;
  const verb = (VERBS[method] ?? method).toLowerCase();
  throw new ApiError(403, "Forbidden", `forbidden: User "${user.name}" cannot ${verb} path "${path}"`, {});
}

/** Python's client sends `True`. Source: apimachinery's conversion of queries: all but `false` and `0` is true. */
const isOn = (value: string | null): boolean => value !== null && !["false", "0"].includes(value.toLowerCase());
