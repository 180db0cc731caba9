import { randomBytes } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { readBoundedBytes } from "../../base/files/bounded-read.ts";
import { replaceFile } from "../../base/files/replace-file.ts";
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
