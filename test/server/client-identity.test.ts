import { describe, expect, test } from "bun:test";
import type { AccessReviewer, User } from "../../src/base/model/cluster-connection.ts";
import {
  type AccessRules,
  authenticate,
  authorize,
  DelegatedAccess,
  type ShownCertificate,
} from "../../src/server/client-identity.ts";
import { FakeClock } from "../support/fake-clock.ts";

const NOW = new Date("2026-11-21T08:00:00Z");
const alice: ShownCertificate = {
  isVerified: true,
  commonName: "alice",
  organizations: ["devs", "ops"],
  notAfter: new Date("2026-11-22T00:00:00Z"),
};
const strict: AccessRules = {
  trustsCertificates: true,
  trustsTokens: false,
  anonymousAuth: false,
  authorizationMode: "AlwaysAllow",
  delegated: undefined,
};
const { signal } = new AbortController();
const showing = (shown: ShownCertificate | undefined, authorization: string | null = null) => ({
  shown,
  header: (name: string) => (name === "Authorization" ? authorization : null),
  signal,
});

const stranger = { ...alice, isVerified: false };

test.each<[when: string, shown: ShownCertificate | undefined, rules: Partial<AccessRules>, want: string | undefined]>([
  ["a certificate that holds", alice, {}, "alice"],
  ["no certificate", undefined, {}, undefined],
  ["no certificate, anonymous", undefined, { anonymousAuth: true }, "system:anonymous"],
  ["one of another authority", stranger, {}, undefined],
  ["one of another authority is not anonymous either", stranger, { anonymousAuth: true }, undefined],
  ["one that ran out meanwhile", { ...alice, notAfter: new Date(0) }, {}, undefined],
  ["one without a name", { ...alice, commonName: "" }, {}, undefined],
  ["any, where no authority is trusted", alice, { trustsCertificates: false }, undefined],
  ["any, where everybody is let in", stranger, { trustsCertificates: false, anonymousAuth: true }, "system:anonymous"],
])("%s", async (_, shown, rules, want) => {
  const user = await authenticate(showing(shown), { ...strict, ...rules }, NOW);
  expect(user?.name).toBe(want as string);
});

test("organizations are groups", async () => {
  expect((await authenticate(showing(alice), strict, NOW))?.groups).toEqual(["devs", "ops", "system:authenticated"]);
});

test.each([
  ["GET", "/pods", "verb=get, resource=nodes, subresource=proxy"],
  ["HEAD", "/metrics/cadvisor", "verb=get, resource=nodes, subresource=metrics"],
  ["POST", "/run/default/p/c", "verb=create, resource=nodes, subresource=proxy"],
  ["GET", "/stats/summary", "verb=get, resource=nodes, subresource=stats"],
  ["GET", "/spec/", "verb=get, resource=nodes, subresource=spec"],
])(
  "%s %s is denied by AlwaysDeny and by Webhook without an API server, allowed by AlwaysAllow",
  async (method, path, want) => {
    const user = { name: "alice", groups: [] };
    const request = { method, path, signal };
    expect(await authorize(user, request, strict)).toBeUndefined();
    for (const authorizationMode of ["AlwaysDeny", "Webhook"] as const) {
      const refusal = await authorize(user, request, { ...strict, authorizationMode });
      expect(refusal).toEqual({ status: 403, message: `Forbidden (user=alice, ${want})` });
    }
  },
);

test.each([
  ["GET", "/metrics", undefined],
  ["HEAD", "/metrics/cadvisor", undefined],
  ["GET", "/stats/summary", undefined],
  ["POST", "/stats/container", 403],
  ["GET", "/metrics/../pods", 403],
  ["GET", "/pods", 403],
  ["GET", "/exec/default/p/c", 403],
  ["POST", "/run/default/p/c", 403],
  ["GET", "/logs/syslog", 403],
])("a member of system:monitoring where all may do everything: %s %s: %p", async (method, path, want) => {
  const request = { method, path, signal };
  const groups = ["system:monitoring", "system:authenticated"];
  expect((await authorize({ name: "prometheus", groups }, request, strict))?.status).toBe(want as 403);
  const masters = [...groups, "system:masters"];
  expect(await authorize({ name: "admin", groups: masters }, request, strict)).toBeUndefined();
});

/** An API server that knows one token, and lets its user read metrics. */
class FakeReviewer implements AccessReviewer {
  readonly asked: string[] = [];
  isAway = false;

  async reviewToken(token: string): Promise<User | undefined> {
    this.#note(`token ${token}`);
    return token === "good" ? { name: "bob", uid: "u1", groups: ["readers"] } : undefined;
  }

  async reviewAccess(user: User, { verb, subresource }: { verb: string; subresource: string }): Promise<boolean> {
    this.#note(`${user.name} ${verb} ${subresource}`);
    return user.name === "bob" && subresource === "metrics";
  }

  #note(what: string): void {
    if (this.isAway) throw new Error("connect ECONNREFUSED");
    this.asked.push(what);
  }
}

function aDelegation() {
  const clock = new FakeClock();
  const reviewer = new FakeReviewer();
  const ttl = {
    authenticationTokenWebhookCacheTtlMs: 120_000,
    authorizationWebhookCacheAuthorizedTtlMs: 300_000,
    authorizationWebhookCacheUnauthorizedTtlMs: 30_000,
  };
  const delegated = new DelegatedAccess(reviewer, ttl, clock);
  const rules: AccessRules = { ...strict, trustsTokens: true, authorizationMode: "Webhook", delegated };
  return { clock, reviewer, rules };
}

describe("an API server that reviews clients", () => {
  const anonymous = { anonymousAuth: true };
  test.each<
    [
      when: string,
      authorization: string | null,
      more: Partial<AccessRules> & { shown?: ShownCertificate },
      want: string | undefined,
    ]
  >([
    ["a valid token", "Bearer good", {}, "bob"],
    ["the scheme in lower case", "bearer good", {}, "bob"],
    ["a token that is not valid", "Bearer bad", {}, undefined],
    ["a token that is not valid, anonymous", "Bearer bad", anonymous, undefined],
    ["another scheme", "Basic good", {}, undefined],
    ["another scheme, anonymous", "Basic good", anonymous, "system:anonymous"],
    ["no token, anonymous", null, anonymous, "system:anonymous"],
    ["no --authentication-token-webhook", "Bearer good", { trustsTokens: false }, undefined],
    ["a certificate that holds, with a token", "Bearer good", { shown: alice }, "alice"],
    ["a certificate that does not hold, with a token", "Bearer good", { shown: stranger }, "bob"],
  ])("%s", async (_, authorization, { shown, ...more }, want) => {
    const { rules } = aDelegation();
    const user = await authenticate(showing(shown, authorization), { ...rules, ...more }, NOW);
    expect(user?.name).toBe(want as string);
  });

  test("answers about tokens, valid or not, are kept for their time", async () => {
    const { rules, reviewer, clock } = aDelegation();
    const ask = (token: string) => authenticate(showing(undefined, `Bearer ${token}`), rules, NOW);
    for (const token of ["good", "bad", "good", "bad"]) await ask(token);
    expect(reviewer.asked).toEqual(["token good", "token bad"]);
    await clock.advance(120_000);
    await ask("good");
    expect(reviewer.asked).toHaveLength(3);
  });

  test("what is allowed is kept longer than what is denied", async () => {
    const { rules, reviewer, clock } = aDelegation();
    const bob = { name: "bob", groups: [] };
    const ask = (path: string) => authorize(bob, { method: "GET", path, signal }, rules);
    expect(await ask("/metrics")).toBeUndefined();
    expect((await ask("/pods"))?.status).toBe(403);
    await clock.advance(30_000);
    await ask("/metrics/cadvisor");
    await ask("/pods");
    expect(reviewer.asked).toEqual(["bob get metrics", "bob get proxy", "bob get proxy"]);
    await clock.advance(270_000);
    await ask("/metrics");
    expect(reviewer.asked).toHaveLength(4);
  });

  test("while it is away a token is 401 and an access 500, and both are asked again", async () => {
    const { rules, reviewer } = aDelegation();
    const errors: string[] = [];
    const note = (error: string) => errors.push(error);
    const bob = { name: "bob", groups: [] };
    const request = { method: "GET", path: "/metrics", signal };
    reviewer.isAway = true;
    expect(await authenticate(showing(undefined, "Bearer good"), rules, NOW, note)).toBeUndefined();
    expect(await authorize(bob, request, rules, note)).toEqual({
      status: 500,
      message: "Authorization error (user=bob, verb=get, resource=nodes, subresource=metrics)",
    });
    expect(errors).toEqual(["connect ECONNREFUSED", "connect ECONNREFUSED"]);
    reviewer.isAway = false;
    expect((await authenticate(showing(undefined, "Bearer good"), rules, NOW))?.name).toBe("bob");
    expect(await authorize(bob, request, rules)).toBeUndefined();
  });
});
