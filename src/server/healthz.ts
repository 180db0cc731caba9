import { type Answer, notFound, type RouteRequest, textAnswer } from "./answer.ts";
import type { HealthCheck } from "./view.ts";

const NOSNIFF = { "X-Content-Type-Options": "nosniff" };

/**
 * `/healthz` and `/healthz/<check>`: 200 `ok`, or 500 and what failed. `?verbose` lists every check, `?exclude=<check>`
 * leaves one out. Source: apiserver's healthz package.
 */
export function healthzAnswer(request: RouteRequest, checks: readonly HealthCheck[]): Answer {
  if (request.path !== "/healthz") {
    const check = checks.find(({ name }) => request.path === `/healthz/${name}`);
    if (!check) return notFound();
    return check.ok ? textAnswer(200, "ok") : textAnswer(500, `internal server error: ${check.message}\n`, NOSNIFF);
  }
  const excluded = new Set(request.query.getAll("exclude"));
  const included = checks.filter(({ name }) => !excluded.has(name));
  const failed = included.some(({ ok }) => !ok);
  if (!failed && !request.query.has("verbose")) return textAnswer(200, "ok", NOSNIFF);
  const lines = checks.map(({ name, ok, message }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok\n`;
    return ok ? `[+]${name} ok\n` : `[-]${name} failed: ${message}\n`;
  });
  return textAnswer(failed ? 500 : 200, `${lines.join("")}healthz check ${failed ? "failed" : "passed"}\n`, NOSNIFF);
}
