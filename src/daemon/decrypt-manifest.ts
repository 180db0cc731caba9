import { readBoundedText } from "../base/files/whole-file.ts";
import { encryptionOf } from "../base/text/age-text.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ManifestResult, ReadManifestOptions } from "../manifest/object-reading.ts";
import { refuseManifest } from "../manifest/read-manifest.ts";

const MAX_IDENTITY_BYTES = 64 * 1024;

/**
 * Decrypts a manifest with the identities of a file and reads it. Findings name the place of a mistake; those that would
 * quote the text are shortened, as it may be secret.
 * @param read reads the decrypted text
 */
export async function readEncryptedManifest(
  bytes: Uint8Array,
  how: ReadManifestOptions,
  identityFile: string,
  read: (bytes: Uint8Array, how: ReadManifestOptions) => ManifestResult | Promise<ManifestResult>,
): Promise<ManifestResult> {
  let text: Uint8Array;
  try {
    text = await decrypt(bytes, identityFile);
  } catch (error) {
    return refuseManifest(how, messageOf(error));
  }
  const result = await read(text, how);
  for (const finding of [...result.findings, ...result.results.flatMap(({ findings }) => findings)]) {
    if (finding.code === "syntax") finding.message = "the decrypted text is not valid here; decrypt it to see the line";
  }
  return result;
}

/** @throws Error whose message has nothing of the text */
async function decrypt(bytes: Uint8Array, identityFile: string): Promise<Uint8Array> {
  const identities = readIdentities(identityFile);
  const { armor, Decrypter } = await import("age-encryption");
  const decrypter = new Decrypter();
  for (const identity of identities) {
    try {
      decrypter.addIdentity(identity);
    } catch {
      throw new Error(`"${identityFile}" holds an identity that cannot be used: it takes AGE-SECRET-KEY-1…`);
    }
  }
  let file: Uint8Array;
  try {
    file = encryptionOf(bytes) === "armored" ? armor.decode(new TextDecoder().decode(bytes)) : bytes;
  } catch {
    throw new Error("the armored text is damaged");
  }
  try {
    return await decrypter.decrypt(file);
  } catch (error) {
    const isOther = /no identity/i.test((error as Error).message);
    throw new Error(
      isOther
        ? `no identity of "${identityFile}" decrypts the file: encrypt it to the recipient of that identity (age -R)`
        : "the encrypted file is damaged",
    );
  }
}

function readIdentities(path: string): string[] {
  try {
    const lines = readBoundedText(path, MAX_IDENTITY_BYTES)
      .split("\n")
      .map((line) => line.trim());
    const identities = lines.filter((line) => line !== "" && !line.startsWith("#"));
    if (identities.length === 0) throw new Error("it holds no identity");
    return identities;
  } catch (error) {
    throw new Error(`--manifest-identity-file "${path}" cannot be read: ${(error as Error).message}`);
  }
}
