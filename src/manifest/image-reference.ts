/** Parts of an image reference that decide how it is pulled. */
export interface ImageReference {
  tag: string | undefined;
  digest: string | undefined;
}

const DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PATH_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const REFERENCE = new RegExp(`^(${DOMAIN}/${PATH_PART}(?:/${PATH_PART})*)(?::(\\w[\\w.-]{0,127}))?(?:@(.+))?$`);
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Reads an image reference as the kubelet does, after filling in the registry.
 * @returns undefined for what Docker could not pull either. Source: distribution's `reference` package.
 */
export function parseImageReference(image: string): ImageReference | undefined {
  if (/^[a-f0-9]{64}$/.test(image)) return undefined;
  const match = REFERENCE.exec(withRegistry(image));
  if (!match || match[1]!.length > 255) return undefined;
  const digest = match[3];
  if (digest !== undefined && !isDigest(digest)) return undefined;
  return { tag: match[2], digest };
}

/** The first part is a registry when it looks like a host; anything else lives on Docker Hub. */
function withRegistry(image: string): string {
  const slash = image.indexOf("/");
  const first = image.slice(0, Math.max(slash, 0));
  const isHost = slash !== -1 && (/[.:]/.test(first) || first === "localhost" || first.toLowerCase() !== first);
  if (isHost) return image;
  return slash === -1 ? `docker.io/library/${image}` : `docker.io/${image}`;
}

function isDigest(digest: string): boolean {
  const [algorithm = "", hex = ""] = digest.split(":");
  return (
    Object.hasOwn(DIGEST_LENGTHS, algorithm) && hex.length === DIGEST_LENGTHS[algorithm] && /^[a-f0-9]+$/.test(hex)
  );
}

/** `Always` when the tag is `latest` or there is neither tag nor digest, else `IfNotPresent`; also when unreadable. */
export function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  const reference = parseImageReference(image);
  if (!reference) return "IfNotPresent";
  return reference.tag === "latest" || (!reference.tag && !reference.digest) ? "Always" : "IfNotPresent";
}
