import {
  type Answer,
  cleanPath,
  methodNotAllowed,
  movedPermanently,
  notFound,
  type RouteRequest,
  textAnswer,
} from "./answer.ts";
import { indexPage } from "./index-page.ts";
import { isReading, metricsAnswer, type ReadOnlyContext } from "./read-only-routes.ts";

/** The cAdvisor port, 4194: an index page, the JSON API that cAdvisor's clients use, its metrics. [S072] */
export function routeCadvisor(request: RouteRequest, context: ReadOnlyContext): Answer | Promise<Answer> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path);
  switch (path) {
    case "/":
    case "/index.html":
      return isReading(request) ? htmlAnswer(indexPage(context.view)) : methodNotAllowed();
    case "/healthz":
      return isReading(request) ? textAnswer(200, "ok") : methodNotAllowed();
    case "/metrics":
      if (!isReading(request)) return methodNotAllowed();
      return metricsAnswer(request, (format) => context.stats.cadvisorMetrics(format));
    default:
      return notFound();
  }
}

function htmlAnswer(body: string): Answer {
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  };
  return { status: 200, headers, body };
}
