import { expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  createLoginToken,
  ensurePageSecret,
  LOGIN_LIFETIME_MS,
  PageSessions,
  readPageSecret,
  SESSION_LIFETIME_MS,
} from "../../../src/server/page/page-session.ts";
import { tempDirs } from "../../support/temp-dir.ts";

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

const HOUR_MS = 3_600_000;

test.each([
  { title: "made while the process runs", createdMs: HOUR_MS, nowMs: HOUR_MS + 5, uptimeMs: 5, isGood: true },
  { title: "made before its start", createdMs: HOUR_MS, nowMs: HOUR_MS + 5, uptimeMs: 4, isGood: false },
  { title: "after the clock was set back", createdMs: HOUR_MS, nowMs: HOUR_MS, uptimeMs: 2 * HOUR_MS, isGood: true },
  { title: "made before the clock was set back", createdMs: 2 * HOUR_MS, nowMs: HOUR_MS, uptimeMs: 5, isGood: false },
])("a login token: $title: $isGood", ({ createdMs, nowMs, uptimeMs, isGood }) => {
  const sessions = new PageSessions(
    secret,
    () => nowMs,
    () => uptimeMs,
  );
  expect(sessions.logIn(createLoginToken(secret, createdMs)) !== undefined).toBe(isGood);
});

test.each([
  { user: undefined, client: undefined, isGood: true },
  { user: 1000, client: 1000, isGood: true },
  { user: 1000, client: 0, isGood: true },
  { user: 1000, client: 1001, isGood: false },
  { user: 1000, client: undefined, isGood: false },
  { user: 0, client: 0, isGood: true },
  { user: 0, client: 1000, isGood: false },
])("a token for user $user, opened by $client: $isGood", ({ user, client, isGood }) => {
  const sessions = new PageSessions(secret, () => 1000);
  const token = createLoginToken(secret, 1000, user);
  expect(sessions.logIn(token, () => client) !== undefined).toBe(isGood);
  // A stranger does not use it up.
  if (!isGood) expect(sessions.logIn(token, () => user)).toBeString();
});

test("a program on another port of the host cannot end a session with a cookie of the same name", () => {
  const sessions = new PageSessions(secret, () => 1000);
  const cookie = `${sessions.cookieName}=${sessions.logIn(createLoginToken(secret, 1000))}`;
  expect(sessions.isValid(`${sessions.cookieName}=x; ${cookie}`)).toBe(true);
  expect(sessions.isValid(`${`${sessions.cookieName}=x; `.repeat(1000)}${cookie}`)).toBe(false);
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

const temp = tempDirs();
function aRoot() {
  const rootDir = temp();
  return { rootDir, file: join(rootDir, "page-secret") };
}

test("the secret is made once, for its owner only", () => {
  const { rootDir, file } = aRoot();
  const secret = ensurePageSecret(rootDir);
  expect(ensurePageSecret(rootDir)).toEqual(secret);
  expect(readPageSecret(rootDir)).toEqual(secret);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test.each([0o644, 0o640, 0o604, 0o620])("a secret that other users may have read is replaced: %o", (mode) => {
  const { rootDir, file } = aRoot();
  const known = ensurePageSecret(rootDir);
  chmodSync(file, mode);
  const secret = ensurePageSecret(rootDir);
  expect(secret).not.toEqual(known);
  expect(readFileSync(file).equals(secret)).toBe(true);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a damaged secret is replaced at the start", () => {
  const { rootDir, file } = aRoot();
  writeFileSync(file, "short", { mode: 0o600 });
  expect(() => readPageSecret(rootDir)).toThrow(/is damaged: remove it and restart/);
  expect(ensurePageSecret(rootDir)).toEqual(readPageSecret(rootDir));
});

test("where nothing can be written, the secret lasts until the end of the process", () => {
  const { file } = aRoot();
  const place = join(file, "below-a-file");
  writeFileSync(file, "", { mode: 0o600 });
  expect(ensurePageSecret(place)).toHaveLength(32);
  expect(existsSync(place)).toBe(false);
});
