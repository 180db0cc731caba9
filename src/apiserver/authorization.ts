import type { ApiUser } from "./api-request.ts";

/** The requested access to a resource. */
export interface Access {
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
