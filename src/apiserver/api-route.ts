import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ShownCertificate } from "../server/client-identity.ts";
import type { ListenerRequest, ListenerResponse } from "../server/http-response.ts";
import { BodyTooLongError, TooManyBodiesError } from "../server/request-handler.ts";
import { ApiError, badRequest, internalError, tooLarge, tooManyRequests, unauthorized } from "./api-error.ts";
import { type ApiRequest, type ApiResponse, type ApiUser, json } from "./api-request.ts";
import { MAX_BODY_BYTES } from "./body.ts";

/** Sessions of exec, attach and port-forward at a time: each holds two connections and a process in a container. */
const MAX_SESSIONS = 256;

export interface ApiRouteDeps {
  logger: Logger;
  answer: (request: ApiRequest) => Promise<ApiResponse>;
  /** @returns undefined: 401 */
  authenticate: (
    shown: ShownCertificate | undefined,
    authorization: string | null,
  ) => ApiUser | undefined | Promise<ApiUser | undefined>;
}

/** The route of a listener of the API: authentication, the answer, and errors in Kubernetes' form. */
export function toApiRoute(deps: ApiRouteDeps): (request: ListenerRequest) => Promise<ListenerResponse> {
  return async (request) => {
    const answer = await answerOrError(request, deps);
    if ("takeOver" in answer || "run" in answer) {
      return request.upgrade === "" ? json(400, badRequest("Upgrade request required").status) : answer;
    }
    return { ...answer, headers: { ...answer.headers, "Cache-Control": "no-cache, private" } };
  };
}

async function answerOrError(request: ListenerRequest, deps: ApiRouteDeps): Promise<ApiResponse> {
  const { method, path, query, header, signal, upgrade } = request;
  try {
    const user = await deps.authenticate(request.shown, header("Authorization"));
    if (!user) throw unauthorized();
    if (request.sessions > MAX_SESSIONS) {
      throw tooManyRequests(
        `${MAX_SESSIONS} sessions of exec, attach and port-forward are open: end some of them first`,
      );
    }
    return await deps.answer({ method, path, query, header, body: () => readBody(request), user, signal, upgrade });
  } catch (error) {
    if (error instanceof ApiError) return json(error.code, error.status);
    deps.logger.error("A request of the local API could not be answered", { path, error: messageOf(error) });
    return json(500, internalError("the log has the reason").status);
  }
}

async function readBody(request: ListenerRequest): Promise<Uint8Array> {
  try {
    return await request.body(MAX_BODY_BYTES);
  } catch (error) {
    if (error instanceof BodyTooLongError) throw tooLarge(MAX_BODY_BYTES);
    if (error instanceof TooManyBodiesError) throw tooManyRequests(error.message);
    throw error;
  }
}
