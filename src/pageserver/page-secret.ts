import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBoundedBytes } from "../files/bounded-read.ts";
import { SECRET_BYTES } from "./page-session.ts";

const FILE = "page-secret";

/**
 * The secret that signs sessions of the page: only its owner (0600, below the root directory) can log in.
 * @throws the file system's error when it cannot be read
 */
export function readPageSecret(rootDir: string): Buffer {
  const secret = Buffer.from(readBoundedBytes(join(rootDir, FILE), 1024));
  if (secret.length !== SECRET_BYTES)
    throw new Error(`"${join(rootDir, FILE)}" is damaged: remove it and restart kubelet-ts`);
  return secret;
}

/** Reads the secret, or creates it. A disk that is full or read-only gets one that lasts until the next start. */
export function ensurePageSecret(rootDir: string): Buffer {
  try {
    return readPageSecret(rootDir);
  } catch {
    const secret = randomBytes(SECRET_BYTES);
    const file = join(rootDir, FILE);
    try {
      mkdirSync(rootDir, { recursive: true });
      writeFileSync(file, secret, { mode: 0o600 });
      chmodSync(file, 0o600);
    } catch {
      // `kubelet-ts page` reports it.
    }
    return secret;
  }
}
