import type { HealthCheck } from "../base/model/health-check.ts";
import { type HttpResponse, notFound, type RouteRequest, textResponse } from "./http-response.ts";

const NOSNIFF = { "X-Content-Type-Options": "nosniff" };

/**
 * `/healthz` and `/healthz/<check>`: 200 `ok`, or 500 and the reason. `?verbose` lists every check, `?exclude=<check>`
 * skips one. Source: apiserver's healthz package.
 */
export function healthzResponse(request: RouteRequest, checks: readonly HealthCheck[]): HttpResponse {
  if (request.path !== "/healthz") {
    const check = checks.find(({ name }) => request.path === `/healthz/${name}`);
    if (!check) return notFound();
    return check.ok ? textResponse(200, "ok") : textResponse(500, `internal server error: ${check.message}\n`, NOSNIFF);
  }
  const names = request.query.getAll("exclude").flatMap((text) => text.split(","));
  const excluded = new Set(names.filter((name) => name !== ""));
  const included = checks.filter(({ name }) => !excluded.has(name));
  const failed = included.some(({ ok }) => !ok);
  if (!failed && !request.query.has("verbose")) return textResponse(200, "ok", NOSNIFF);
  const lines = checks.map(({ name, ok, message }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok\n`;
    return ok ? `[+]${name} ok\n` : `[-]${name} failed: ${message}\n`;
  });
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name));
  if (unknown.length > 0) {
    const quoted = unknown.map((name) => JSON.stringify(name)).join(",");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${quoted}\n`);
  }
  return textResponse(failed ? 500 : 200, `${lines.join("")}healthz check ${failed ? "failed" : "passed"}\n`, NOSNIFF);
}
