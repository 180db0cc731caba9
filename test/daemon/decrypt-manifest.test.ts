import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { armor, Encrypter, generateIdentity, identityToRecipient } from "age-encryption";
import { readEncryptedManifest } from "../../src/daemon/decrypt-manifest.ts";
import type { ReadManifestOptions } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

const HOW: ReadManifestOptions = {
  file: "/m/db.yaml.age",
  nodeName: "node1",
  source: "file",
  strictness: "standard",
  allowPrivileged: true,
};
const SECRET = `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: s3cret-of-age}
`;

async function encrypt(text: string, recipient: string): Promise<Uint8Array> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return encrypter.encrypt(text);
}

async function keys(): Promise<{ file: string; recipient: string }> {
  const identity = await generateIdentity();
  const file = join(tempDir(), "identity.txt");
  writeFileSync(file, `# created by a test\n${identity}\n`, { mode: 0o600 });
  return { file, recipient: await identityToRecipient(identity) };
}

const messagesOf = ({ findings }: { findings: readonly { message: string }[] }) =>
  findings.map(({ message }) => message);

describe("manifests encrypted with age", () => {
  test("binary and armored", async () => {
    const { file, recipient } = await keys();
    const binary = await encrypt(SECRET, recipient);
    for (const bytes of [binary, new TextEncoder().encode(armor.encode(binary))]) {
      const { secrets, findings } = await readEncryptedManifest(bytes, HOW, file, readManifest);
      expect(findings).toEqual([]);
      expect(secrets[0]?.data?.password).toBe(btoa("s3cret-of-age"));
    }
  });

  test("without an identity the finding names the flag", async () => {
    const { recipient } = await keys();
    expect(messagesOf(readManifest(await encrypt(SECRET, recipient), HOW))).toEqual([
      expect.stringContaining("--manifest-identity-file"),
    ]);
  });

  test("the wrong identity, a damaged file and a missing identity file are findings", async () => {
    const [mine, other] = [await keys(), await keys()];
    const bytes = await encrypt(SECRET, other.recipient);
    const read = async (text: Uint8Array, file: string) =>
      messagesOf(await readEncryptedManifest(text, HOW, file, readManifest));
    expect(await read(bytes, mine.file)).toEqual([expect.stringContaining("no identity of")]);
    const damaged = bytes.slice();
    damaged[damaged.length - 1]! ^= 1;
    expect(await read(damaged, other.file)).toEqual(["the encrypted file is damaged"]);
    expect(await read(bytes.slice(0, 60), other.file)).toEqual(["the encrypted file is damaged"]);
    expect(await read(bytes, "/nowhere")).toEqual([expect.stringContaining('"/nowhere" cannot be read')]);
  });

  test("a mistake in the text is not quoted", async () => {
    const { file, recipient } = await keys();
    const bytes = await encrypt(`${SECRET}  s3cret-of-age: [`, recipient);
    const { findings } = await readEncryptedManifest(bytes, HOW, file, readManifest);
    expect(findings.length).toBe(1);
    expect(JSON.stringify(findings)).not.toContain("s3cret");
  });
});
