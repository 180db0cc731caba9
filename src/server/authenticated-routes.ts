import type { LogDirectory } from "../base/host/log-directory.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { type AccessRules, authenticate, authorize } from "./client-identity.ts";
import { CONTAINER_ROOTS, type ContainerRoutesContext, routeContainers } from "./container-routes.ts";
import { isKnownPath, type ReadOnlyContext, routeReadOnly } from "./read-only-routes.ts";
import {
  cleanPath,
  debugDisabled,
  escapeHtml,
  isReading,
  type ListenerResponse,
  methodNotAllowed,
  NOSNIFF,
  notFound,
  type RouteRequest,
  type RouteResponse,
  resourceNotFound,
  rootOf,
  type ServerRequest,
  textResponse,
} from "./request-handler.ts";

export interface AuthenticatedContext extends ContainerRoutesContext {
  clock: Clock;
  logger: Logger;
  /** For the routes of the read-only port. Its pods may be shown in full. */
  readOnly: ReadOnlyContext;
  rules: AccessRules;
  /** `--enable-debugging-handlers`. */
  debuggingHandlers: boolean;
  /** Behind `/logs/`; absent: not served. */
  logDirectory: LogDirectory | undefined;
}

const NO_LOG_QUERY = "Log queries are not supported: ask for a file, as in /logs/syslog\n";

/**
 * The authenticated port, 10250: the routes of the read-only port and those to containers. Paths, codes and texts are
 * those of kubelet 1.20; unknown paths are 404 without authentication, too.
 */
export async function routeAuthenticated(
  request: ServerRequest,
  context: AuthenticatedContext,
): Promise<ListenerResponse> {
  const path = cleanPath(request.path);
  const root = rootOf(path);
  if (!CONTAINER_ROOTS.has(root) && !isKnownPath(path)) return notFound();
  const onError = (error: string) =>
    context.logger.warn("The API server cannot review a client of the kubelet", { error });
  const user = await authenticate(request, context.rules, context.clock.now(), onError);
  if (!user) return textResponse(401, "Unauthorized");
  const refusal = await authorize(user, request, context.rules, onError);
  if (refusal) return textResponse(refusal.status, refusal.message);
  // Redirects paths with doubled slashes and dots.
  if (path !== request.path) return routeReadOnly(request, context.readOnly);
  if (!context.debuggingHandlers) {
    if (root === "runningpods") return debugDisabled();
    return root === "configz" || root === "flagz" ? notFound() : routeReadOnly(request, context.readOnly);
  }
  if (CONTAINER_ROOTS.has(root) && path !== `/${root}`) {
    // A page must not use the certificate of the browser that shows it.
    if (isOfAnotherSite(request)) return textResponse(403, "Requests of other web sites are refused.\n");
    return routeContainers(request, user, context);
  }
  if (root === "debug") return path.startsWith("/debug/pprof/") ? resourceNotFound() : notFound();
  if (root === "logs" && path !== "/logs") {
    if (request.query.has("query")) return textResponse(400, NO_LOG_QUERY);
    return context.logDirectory ? routeLogDirectory(request, context.logDirectory) : notFound();
  }
  return routeReadOnly(request, context.readOnly);
}

/**
 * Browsers name the site that a request comes from; other programs name none, or this server. An API server, with a client
 * certificate or without, passes on the header of its own client, and adds `X-Forwarded-For`: a page cannot do that for a
 * WebSocket, nor for another request without asking first, which is not allowed here. No page can add a bearer token to a request that it may not make.
 */
function isOfAnotherSite(request: ServerRequest): boolean {
  const origin = request.header("Origin");
  if (origin === null || /^bearer /i.test(request.header("Authorization") ?? "")) return false;
  if (request.header("X-Forwarded-For") !== null) return false;
  return URL.parse(origin)?.host !== request.header("Host")?.toLowerCase();
}

const PREFIX = "/logs/";

/**
 * `/logs/…`: the machine's log directory, files as text and directories as lists. What leads out of it is
 * not there. Source: Go's `http.FileServer`; parts of a file cannot be asked for.
 */
export async function routeLogDirectory(request: RouteRequest, directory: LogDirectory): Promise<RouteResponse> {
  if (!isReading(request)) return methodNotAllowed();
  const relative = request.path.slice(PREFIX.length);
  const entry = await directory.open(relative.replace(/\/$/, ""));
  if (!entry) return notFound();
  const modified = { "Last-Modified": entry.modifiedAt.toUTCString() };
  if (entry.kind === "directory") {
    if (relative !== "" && !relative.endsWith("/")) return redirect(`${lastPart(relative)}/`);
    const lines = entry.entries.map(({ name, isDirectory }) => {
      const shown = isDirectory ? `${name}/` : name;
      // A name with a colon would read as a scheme.
      const link = shown.includes(":") ? `./${shown}` : shown;
      return `<a href="${escapeHtml(encodeURI(link).replace(/[?#]/g, encodeURIComponent))}">${escapeHtml(shown)}</a>\n`;
    });
    const headers = { "Content-Type": "text/html; charset=utf-8", ...modified };
    return textResponse(200, `<pre>\n${lines.join("")}</pre>\n`, headers);
  }
  if (relative.endsWith("/")) {
    entry.close();
    return redirect(`../${lastPart(relative.slice(0, -1))}`);
  }
  // Never as HTML: any program writes to a log.
  const headers = {
    "Content-Type": "text/plain; charset=utf-8",
    ...NOSNIFF,
    "Content-Length": String(entry.sizeBytes),
    ...modified,
  };
  if (request.method !== "HEAD") return { status: 200, headers, chunks: entry.chunks() };
  entry.close();
  return { status: 200, headers, chunks: (async function* () {})() };
}

const lastPart = (path: string) => encodeURIComponent(path.slice(path.lastIndexOf("/") + 1));

const redirect = (location: string) => textResponse(301, "", { Location: location });
