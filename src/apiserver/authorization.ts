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
const INSIDE = new Set(["exec", "attach", "portforward", "proxy", "ephemeralcontainers", "eviction"]);
const READING = new Set(["get", "list", "watch"]);
/** Everyone may ask about themselves. */
const ABOUT_ONESELF = new Set(["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"]);

/**
 * `admin` may do everything; `view` may look at everything but into containers, and sees Secrets without their data.
 */
export function mayDo({ role }: ApiUser, { verb, resource, subresource }: Access): boolean {
  if (role === "admin") return true;
  if (role !== "view") return false;
  if (ABOUT_ONESELF.has(resource)) return true;
  return READING.has(verb) && !INSIDE.has(subresource);
}
