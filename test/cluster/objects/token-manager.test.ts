import { describe, expect, test } from "bun:test";
import { TokenManager } from "../../../src/cluster/objects/token-manager.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const PATH = "/api/v1/namespaces/default/serviceaccounts/default/token";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WISH = { audience: "vault", expirationSeconds: 600 };
const pod = aPod({}, { name: "web", namespace: "default", uid: "uid-web" });

/** @param lifeSeconds what the API server grants; default: what is asked for */
function aWorld(lifeSeconds?: number) {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  let issued = 0;
  let dues = 0;
  api.set(PATH, ({ body }) => {
    const { expirationSeconds } = (body as { spec: { expirationSeconds: number } }).spec;
    const ends = clock.now().getTime() + (lifeSeconds ?? expirationSeconds) * 1000;
    return { status: { token: `token-${++issued}`, expirationTimestamp: new Date(ends).toISOString() } };
  });
  const tokens = new TokenManager({ client: api, clock, onDue: () => dues++ });
  return { clock, api, tokens, dues: () => dues };
}

describe("tokens of a pod", () => {
  test("the request is bound to the pod, with its audience and life", async () => {
    const { api, tokens } = aWorld();
    await tokens.tokenFor(pod, WISH);
    expect(api.requests).toMatchObject([
      {
        method: "POST",
        path: PATH,
        body: {
          kind: "TokenRequest",
          spec: {
            audiences: ["vault"],
            expirationSeconds: 600,
            boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid-web" },
          },
        },
      },
    ]);
  });

  test("a token serves until four fifths of its life, then the pod's files are due and another is requested", async () => {
    const { clock, tokens, dues } = aWorld();
    expect(await tokens.tokenFor(pod, WISH)).toBe("token-1");
    const revision = tokens.revisionOf("uid-web");
    await clock.advance(7 * MINUTE_MS);
    expect(await tokens.tokenFor(pod, WISH)).toBe("token-1");
    expect(dues()).toBe(0);
    await clock.advance(MINUTE_MS);
    expect(dues()).toBe(1);
    expect(tokens.revisionOf("uid-web")).not.toBe(revision);
    expect(await tokens.tokenFor(pod, WISH)).toBe("token-2");
  });

  test("the granted lifetime counts, not the requested one", async () => {
    const { clock, tokens, dues } = aWorld(300);
    await tokens.tokenFor(pod, WISH);
    await clock.advance(4 * MINUTE_MS);
    expect(dues()).toBe(1);
  });

  test("a token of a year is replaced after a day", async () => {
    const { clock, tokens, dues } = aWorld();
    await tokens.tokenFor(pod, { ...WISH, expirationSeconds: 365 * 24 * 3600 });
    await clock.advance(24 * HOUR_MS - 1);
    expect(dues()).toBe(0);
    await clock.advance(1);
    expect(dues()).toBe(1);
  });

  test("while the API server is unreachable the old token serves and another attempt follows, until it has expired", async () => {
    const { clock, api, tokens, dues } = aWorld();
    await tokens.tokenFor(pod, WISH);
    api.error = new Error("away");
    await clock.advance(8 * MINUTE_MS);
    expect(await tokens.tokenFor(pod, WISH)).toBe("token-1");
    await clock.advance(31_000);
    expect(dues()).toBe(2);
    await clock.advance(2 * MINUTE_MS);
    expect(tokens.tokenFor(pod, WISH)).rejects.toThrow("away");
    api.error = undefined;
    expect(await tokens.tokenFor(pod, WISH)).toBe("token-2");
  });

  test("nothing is requested for a pod that is gone", async () => {
    const { clock, api, tokens, dues } = aWorld();
    await tokens.tokenFor(pod, WISH);
    tokens.retain(new Set());
    await clock.advance(24 * HOUR_MS);
    expect(dues()).toBe(0);
    expect(api.requests).toHaveLength(1);
    expect(tokens.revisionOf("uid-web")).toBeUndefined();
  });
});
