import { runProgram } from "../base/host/run-program.ts";
import type { RegistryAuth } from "./engine/image-transfer.ts";

/** Docker's protocol: this user name says that the secret is a token. */
const TOKEN_USER = "<token>";
const HELPER_TIMEOUT_MS = 30_000;

/**
 * Asks `docker-credential-<helper> get` for the credentials of a registry.
 * Source: github.com/docker/docker-credential-helpers.
 * @returns undefined when it knows none
 * @throws Error naming the helper, never its answer; the signal's reason
 */
export async function askCredentialHelper(
  helper: string,
  registry: string,
  signal: AbortSignal | undefined,
): Promise<RegistryAuth | undefined> {
  if (!/^[A-Za-z0-9._-]+$/.test(helper)) throw new Error(`"${helper}" is not a name of a credential helper`);
  const program = `docker-credential-${helper}`;
  const outcome = await runProgram([program, "get"], {
    input: registry,
    timeoutMs: HELPER_TIMEOUT_MS,
    maxBytes: 1024 * 1024,
    signal,
  });
  if (outcome.exitCode !== 0) {
    // The protocol has no code for it, only this text, on stdout.
    if (/credentials not found/i.test(outcome.stdout)) return undefined;
    throw new Error(`${program} get ended with ${outcome.exitCode}`);
  }
  const answer = parseResponse(outcome.stdout);
  if (!answer) throw new Error(`${program} get answered something else than Username and Secret`);
  return answer.user === TOKEN_USER
    ? { identitytoken: answer.secret }
    : { username: answer.user, password: answer.secret };
}

function parseResponse(text: string): { user: string; secret: string } | undefined {
  try {
    const { Username, Secret } = JSON.parse(text) as { Username?: unknown; Secret?: unknown };
    return typeof Username === "string" && typeof Secret === "string" ? { user: Username, secret: Secret } : undefined;
  } catch {
    return undefined;
  }
}
