import * as v from "valibot";
import type { AccessAttributes, AccessReviewer, User } from "../../base/model/access-review.ts";
import type { ClusterClient } from "./cluster-client.ts";

const REVIEW_LIMIT_MS = 10_000;

const TokenReviewSchema = v.object({
  status: v.object({
    authenticated: v.optional(v.boolean(), false),
    user: v.optional(
      v.object({
        username: v.optional(v.string(), ""),
        uid: v.optional(v.string(), ""),
        groups: v.optional(v.nullable(v.array(v.string())), []),
        extra: v.optional(v.nullable(v.record(v.string(), v.array(v.string())))),
      }),
    ),
  }),
});

const AccessReviewSchema = v.object({ status: v.object({ allowed: v.optional(v.boolean(), false) }) });

/** Asks the API server about clients of this node: TokenReview and SubjectAccessReview. */
export class ClusterAccessReviewer implements AccessReviewer {
  readonly #client: Pick<ClusterClient, "request">;
  readonly #nodeName: string;

  constructor(client: Pick<ClusterClient, "request">, nodeName: string) {
    this.#client = client;
    this.#nodeName = nodeName;
  }

  async reviewToken(token: string, signal: AbortSignal): Promise<User | undefined> {
    const { status } = v.parse(
      TokenReviewSchema,
      await this.#review("authentication.k8s.io/v1", "TokenReview", { token }, signal),
    );
    const { user } = status;
    if (!status.authenticated || !user) return undefined;
    return {
      name: user.username,
      groups: user.groups ?? [],
      ...(user.uid !== "" && { uid: user.uid }),
      ...(user.extra && { extra: user.extra }),
    };
  }

  async reviewAccess(user: User, { verb, subresource }: AccessAttributes, signal: AbortSignal): Promise<boolean> {
    const spec = {
      user: user.name,
      groups: user.groups,
      ...(user.uid !== undefined && { uid: user.uid }),
      ...(user.extra && { extra: user.extra }),
      resourceAttributes: { verb, version: "v1", resource: "nodes", subresource, name: this.#nodeName },
    };
    const response = await this.#review("authorization.k8s.io/v1", "SubjectAccessReview", spec, signal);
    return v.parse(AccessReviewSchema, response).status.allowed;
  }

  #review(apiVersion: string, kind: string, spec: object, signal: AbortSignal): Promise<unknown> {
    return this.#client.request({
      method: "POST",
      path: `/apis/${apiVersion}/${kind.toLowerCase()}s`,
      body: { apiVersion, kind, spec },
      timeoutMs: REVIEW_LIMIT_MS,
      signal,
    });
  }
}
