import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { readBoundedBytes, replaceFile } from "../../base/files/whole-file.ts";

/** How long a printed link may be opened. */
export const LOGIN_LIFETIME_MS = 10 * 60_000;
/** How long a browser stays logged in. */
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
const SECRET_BYTES = 32;

/** A one-time token: `<expiry>.<nonce>.<user>.<signature>`. @param userId it is good for this user and root only; default: any user */
export function createLoginToken(secret: Buffer, nowMs: number, userId?: number): string {
  const payload = `${nowMs + LOGIN_LIFETIME_MS}.${randomBytes(12).toString("base64url")}.${userId ?? ""}`;
  return `${payload}.${sign(secret, "login", payload)}`;
}

/** How far the clock may be set back between making a link and opening it. */
const MAX_AHEAD_MS = 60_000;
/** Cookies of our name that are checked: programs on other ports of the host may have set further ones. */
const MAX_COOKIES = 8;

/** Sessions of the page, signed with a secret that only the owner of the root directory can read. They survive a restart. */
export class PageSessions {
  /** Name of the session cookie. Browsers share cookies between ports: each node of a machine has its own. */
  readonly cookieName: string;
  readonly #secret: Buffer;
  readonly #nowMs: () => number;
  readonly #uptimeMs: () => number;
  /** Nonces of used tokens, until they expire. */
  readonly #used = new Map<string, number>();

  /** @param uptimeMs age of this object by a clock that is never set: the wall clock may be hours ahead until it is corrected */
  constructor(secret: Buffer, nowMs: () => number, uptimeMs: () => number = stopwatch()) {
    this.#secret = secret;
    this.cookieName = `kubelet-ts-session-${sign(secret, "cookie", "").slice(0, 8)}`;
    this.#nowMs = nowMs;
    this.#uptimeMs = uptimeMs;
  }

  /**
   * Exchanges a login token, once.
   * @param clientUserId user of the client's process; undefined when it is not known. Asked for tokens of one user only
   * @returns the value of the session cookie; undefined for a bad, used, expired or older token, and for one of another user
   */
  logIn(token: string, clientUserId: () => number | undefined = () => undefined): string | undefined {
    const nowMs = this.#nowMs();
    for (const [nonce, expiresMs] of this.#used) if (expiresMs < nowMs) this.#used.delete(nonce);
    const expiresMs = this.#verify("login", token, 4);
    const [, nonce = "", user = ""] = token.split(".");
    if (expiresMs === undefined || this.#used.has(nonce)) return undefined;
    const createdMs = expiresMs - LOGIN_LIFETIME_MS;
    // It is not known which tokens an earlier process took, or this one while its clock was ahead.
    if (createdMs < nowMs - this.#uptimeMs() || createdMs > nowMs + MAX_AHEAD_MS) return undefined;
    if (user !== "" && ![Number(user), 0].includes(clientUserId() ?? -1)) return undefined;
    this.#used.set(nonce, expiresMs);
    const payload = String(nowMs + SESSION_LIFETIME_MS);
    return `${payload}.${sign(this.#secret, "session", payload)}`;
  }

  isValid(cookieHeader: string | undefined): boolean {
    const prefix = `${this.cookieName}=`;
    return (cookieHeader ?? "")
      .split(";")
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(prefix))
      .slice(0, MAX_COOKIES)
      .some((pair) => this.#verify("session", pair.slice(prefix.length), 2) !== undefined);
  }

  /** @returns when it expires */
  #verify(purpose: "login" | "session", token: string, parts: number): number | undefined {
    if (token.length > 200 || token.split(".").length !== parts) return undefined;
    const end = token.lastIndexOf(".");
    const payload = token.slice(0, end);
    const given = Buffer.from(token.slice(end + 1));
    const wanted = Buffer.from(sign(this.#secret, purpose, payload));
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
    const expiresMs = Number(payload.split(".")[0]);
    return expiresMs > this.#nowMs() ? expiresMs : undefined;
  }
}

function stopwatch(): () => number {
  const startMs = performance.now();
  return () => performance.now() - startMs;
}

const sign = (secret: Buffer, purpose: string, payload: string) =>
  createHmac("sha256", secret).update(`${purpose}:${payload}`).digest("base64url");

const FILE = "page-secret";

/** The secret that signs sessions: only its owner can log in. @throws the file system's error */
export function readPageSecret(rootDir: string): Buffer {
  const secret = Buffer.from(readBoundedBytes(join(rootDir, FILE), 1024));
  if (secret.length !== SECRET_BYTES)
    throw new Error(`"${join(rootDir, FILE)}" is damaged: remove it and restart kubelet-ts`);
  return secret;
}

/**
 * Reads the secret, or creates it. One that other users may have read is replaced, which ends all sessions. A disk that is
 * full or read-only gets one that lasts until the next start.
 */
export function ensurePageSecret(rootDir: string): Buffer {
  const file = join(rootDir, FILE);
  try {
    if (isPrivate(file)) return readPageSecret(rootDir);
  } catch {
    // There is none yet, or it is damaged.
  }
  const secret = randomBytes(SECRET_BYTES);
  try {
    mkdirSync(rootDir, { recursive: true });
    replaceFile(file, secret, { durable: false });
  } catch {
    // `kubelet-ts page` reports it.
  }
  return secret;
}

function isPrivate(file: string): boolean {
  const { mode, uid } = statSync(file);
  return (mode & 0o077) === 0 && uid === process.geteuid?.();
}
