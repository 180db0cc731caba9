import type { LogDirectory } from "../base/model/log-directory.ts";
import {
  escapeHtml,
  methodNotAllowed,
  notFound,
  type RouteResponse,
  type ServerRequest,
  textResponse,
} from "./http-response.ts";
import { isReading } from "./read-only-routes.ts";

const PREFIX = "/logs/";

/**
 * `/logs/…`: the machine's log directory, files as text and directories as lists. What leads out of it is
 * not there. Source: Go's `http.FileServer`; parts of a file cannot be asked for.
 */
export async function routeLogDirectory(request: ServerRequest, directory: LogDirectory): Promise<RouteResponse> {
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
    "X-Content-Type-Options": "nosniff",
    "Content-Length": String(entry.sizeBytes),
    ...modified,
  };
  if (request.method === "HEAD") {
    entry.close();
    return { status: 200, headers, chunks: nothing() };
  }
  return { status: 200, headers, chunks: entry.chunks() };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

const lastPart = (path: string) => encodeURIComponent(path.slice(path.lastIndexOf("/") + 1));

const redirect = (location: string) => textResponse(301, "", { Location: location });
