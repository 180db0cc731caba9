import type { LogDirectory } from "../model/log-directory.ts";
import {
  cleanPath,
  debugDisabled,
  notFound,
  resourceNotFound,
  type ServerAnswer,
  type ServerRequest,
  textAnswer,
} from "./answer.ts";
import { type AccessRules, authenticate, forbid } from "./client-identity.ts";
import { type ContainerRoutesContext, routeContainers } from "./container-routes.ts";
import { routeLogDirectory } from "./log-directory-routes.ts";
import { isKnownPath, type ReadOnlyContext, routeReadOnly } from "./read-only-routes.ts";

/** Everything the routes of the authenticated port answer from. */
export interface AuthenticatedContext extends ContainerRoutesContext {
  /** For what the read-only port has, too. Its pods may be shown in full. */
  readOnly: ReadOnlyContext;
  rules: AccessRules;
  /** `--enable-debugging-handlers`. */
  debuggingHandlers: boolean;
  /** Behind `/logs/`; absent: not served. */
  logDirectory: LogDirectory | undefined;
}

const CONTAINER_ROOTS = new Set(["containerLogs", "run", "exec", "attach", "portForward"]);

/**
 * The authenticated port, 10250: what the read-only port has, and what reaches into containers. Paths, codes and texts
 * as recorded from kubelet 1.20 (oracle 92, 97); unknown paths are 404 even for those who are not let in.
 */
export function routeAuthenticated(
  request: ServerRequest,
  context: AuthenticatedContext,
): ServerAnswer | Promise<ServerAnswer> {
  const path = cleanPath(request.path);
  if (!isKnownPath(path)) return notFound();
  const user = authenticate(request.shown, context.rules, context.clock.now());
  if (!user) return textAnswer(401, "Unauthorized");
  const refusal = forbid(user, request, context.rules);
  if (refusal) return textAnswer(403, refusal);
  // Doubled slashes and dots are led to their clean form.
  if (path !== request.path) return routeReadOnly(request, context.readOnly);
  const root = path.split("/", 2)[1]!;
  if (!context.debuggingHandlers) {
    if (root === "runningpods") return debugDisabled();
    return root === "configz" ? notFound() : routeReadOnly(request, context.readOnly);
  }
  if (CONTAINER_ROOTS.has(root) && path !== `/${root}`) {
    // A page in somebody's browser must not use the certificate that the browser has.
    if (isOfAnotherSite(request)) return textAnswer(403, "Requests of other web sites are refused.\n");
    return routeContainers(request, user, context);
  }
  if (root === "debug") return path.startsWith("/debug/pprof/") ? resourceNotFound() : notFound();
  if (root === "logs" && path !== "/logs") {
    return context.logDirectory ? routeLogDirectory(request, context.logDirectory) : notFound();
  }
  return routeReadOnly(request, context.readOnly);
}

/** Browsers name the site a request comes from; other programs name none, or this one. */
function isOfAnotherSite(request: ServerRequest): boolean {
  const origin = request.header("Origin");
  if (origin === null) return false;
  return URL.parse(origin)?.host !== request.header("Host")?.toLowerCase();
}
