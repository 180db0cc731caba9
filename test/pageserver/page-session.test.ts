import { expect, test } from "bun:test";
import {
  createLoginToken,
  LOGIN_LIFETIME_MS,
  PageSessions,
  SESSION_LIFETIME_MS,
} from "../../src/pageserver/page-session.ts";

const secret = Buffer.alloc(32, 1);

test("a login token is good once, and only for its time and its secret", () => {
  let nowMs = 1_000_000;
  const sessions = new PageSessions(secret, () => nowMs);
  const token = createLoginToken(secret, nowMs);
  const session = sessions.logIn(token);
  expect(sessions.isValid(`other=1; ${sessions.cookieName}=${session}`)).toBe(true);
  expect(sessions.logIn(token)).toBeUndefined();
  expect(sessions.logIn(createLoginToken(Buffer.alloc(32, 2), nowMs))).toBeUndefined();
  const late = createLoginToken(secret, nowMs);
  nowMs += LOGIN_LIFETIME_MS + 1;
  expect(sessions.logIn(late)).toBeUndefined();
  expect(sessions.isValid(`${sessions.cookieName}=${session}`)).toBe(true);
  // Sessions outlive the process.
  expect(new PageSessions(secret, () => nowMs).isValid(`${sessions.cookieName}=${session}`)).toBe(true);
  nowMs += SESSION_LIFETIME_MS;
  expect(sessions.isValid(`${sessions.cookieName}=${session}`)).toBe(false);
});

test("a login token that an earlier process may have taken is refused", () => {
  const token = createLoginToken(secret, 1000);
  expect(new PageSessions(secret, () => 1000).logIn(token)).toBeString();
  expect(new PageSessions(secret, () => 1001).logIn(token)).toBeUndefined();
});

test.each(["", "x", "1.2.3", "9999999999999..", "9999999999999", "a.b.c.d", "x".repeat(100_000)])(
  "%s is neither a token nor a session",
  (text) => {
    const sessions = new PageSessions(secret, () => 1000);
    expect(sessions.logIn(text)).toBeUndefined();
    expect(sessions.isValid(`${sessions.cookieName}=${text}`)).toBe(false);
    expect(sessions.isValid(undefined)).toBe(false);
  },
);

test("a login token is not a session", () => {
  const sessions = new PageSessions(secret, () => 1000);
  expect(sessions.isValid(`${sessions.cookieName}=${createLoginToken(secret, 1000)}`)).toBe(false);
});

test("nodes on one machine have different cookies", () => {
  const names = [1, 2].map((byte) => new PageSessions(Buffer.alloc(32, byte), () => 0).cookieName);
  expect(new Set(names).size).toBe(2);
});
