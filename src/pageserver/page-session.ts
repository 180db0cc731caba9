import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a printed link may be opened. */
export const LOGIN_LIFETIME_MS = 10 * 60_000;
/** How long a browser stays logged in. */
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
export const SECRET_BYTES = 32;

/** A one-time token for the page: `<expiry>.<nonce>.<signature>`. A reader of the secret can create one. */
export function createLoginToken(secret: Buffer, nowMs: number): string {
  const payload = `${nowMs + LOGIN_LIFETIME_MS}.${randomBytes(12).toString("base64url")}`;
  return `${payload}.${sign(secret, "login", payload)}`;
}

/** Sessions of the page, signed with a secret that only the owner of the root directory can read. They survive a restart. */
export class PageSessions {
  /** Name of the session cookie. Browsers share cookies between ports: each node of a machine has its own. */
  readonly cookieName: string;
  readonly #secret: Buffer;
  readonly #nowMs: () => number;
  /** Which tokens of an earlier process were used is not known: they are refused. */
  readonly #startedMs: number;
  /** Nonces of used tokens, until they expire. */
  readonly #used = new Map<string, number>();

  constructor(secret: Buffer, nowMs: () => number) {
    this.#secret = secret;
    this.cookieName = `kubelet-ts-session-${sign(secret, "cookie", "").slice(0, 8)}`;
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  /** Exchanges a login token, once. @returns the value of the session cookie; undefined for a bad, used, expired or older token */
  logIn(token: string): string | undefined {
    const nowMs = this.#nowMs();
    for (const [nonce, expiresMs] of this.#used) if (expiresMs < nowMs) this.#used.delete(nonce);
    const expiresMs = this.#verify("login", token, 3);
    const nonce = token.split(".")[1] ?? "";
    if (expiresMs === undefined || this.#used.has(nonce)) return undefined;
    if (expiresMs - LOGIN_LIFETIME_MS < this.#startedMs) return undefined;
    this.#used.set(nonce, expiresMs);
    const payload = String(nowMs + SESSION_LIFETIME_MS);
    return `${payload}.${sign(this.#secret, "session", payload)}`;
  }

  /** Whether the `Cookie` header of a request holds a valid session. */
  isValid(cookieHeader: string | undefined): boolean {
    const cookie = cookieHeader
      ?.split(";")
      .map((pair) => pair.trim())
      .find((pair) => pair.startsWith(`${this.cookieName}=`))
      ?.slice(this.cookieName.length + 1);
    return cookie !== undefined && this.#verify("session", cookie, 2) !== undefined;
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

const sign = (secret: Buffer, purpose: string, payload: string) =>
  createHmac("sha256", secret).update(`${purpose}:${payload}`).digest("base64url");
