const BINARY = "age-encryption.org/v1\n";
const ARMORED = "-----BEGIN AGE ENCRYPTED FILE-----";

/** Whether a text is encrypted with age, and whether it is armored. Pure. */
export function encryptionOf(bytes: Uint8Array): "binary" | "armored" | undefined {
  const start = new TextDecoder("latin1").decode(bytes.subarray(0, 256));
  if (start.startsWith(BINARY)) return "binary";
  return start.trimStart().startsWith(ARMORED) ? "armored" : undefined;
}
