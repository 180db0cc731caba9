/** Parts of an image name, completed as Docker does: `busybox` is `docker.io/library/busybox:latest`. */
export interface ImageReference {
  /** `docker.io`, `localhost:5000`. */
  domain: string;
  /** `library/busybox`. */
  path: string;
  /** Absent with a digest and no tag. */
  tag: string | undefined;
  /** `sha256:…`. */
  digest: string | undefined;
}

/** The text is not an image name; `message` is Docker's. */
export class InvalidImageReferenceError extends Error {}

const DEFAULT_DOMAIN = "docker.io";
const LEGACY_DEFAULT_DOMAIN = "index.docker.io";
const MAX_NAME_CHARACTERS = 255;

// The grammar of github.com/distribution/reference, except that the separator of a path component cannot be empty. It
// matches the same names without exponential backtracking.
const COMPONENT = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const DOMAIN_COMPONENT = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const HOST = `(?:${DOMAIN_COMPONENT}(?:\\.${DOMAIN_COMPONENT})*|\\[[a-fA-F0-9:]+\\])`;
const NAME = `${HOST}(?::[0-9]+)?/${COMPONENT}(?:/${COMPONENT})*`;
const TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
const DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
const REFERENCE = new RegExp(`^(${NAME})(?::(${TAG}))?(?:@(${DIGEST}))?$`);

const DIGEST_HEX_LENGTH: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/** Source: `ParseNormalizedNamed` of github.com/distribution/reference. @throws InvalidImageReferenceError */
export function parseImageReference(text: string): ImageReference {
  if (/^[a-f0-9]{64}$/.test(text)) {
    throw new InvalidImageReferenceError(
      `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`,
    );
  }
  const { domain, remainder } = splitDomain(text);
  const colon = remainder.indexOf(":");
  const remoteName = colon < 0 ? remainder : remainder.slice(0, colon);
  if (remoteName.toLowerCase() !== remoteName) {
    throw new InvalidImageReferenceError("invalid reference format: repository name must be lowercase");
  }
  const full = `${domain}/${remainder}`;
  // Longest valid name: 255 characters of the name, 128 of the tag, and a digest.
  const match = full.length > 1024 ? null : REFERENCE.exec(full);
  const name = match?.[1];
  if (!match || name === undefined) throw new InvalidImageReferenceError("invalid reference format");
  if (name.length > MAX_NAME_CHARACTERS) {
    throw new InvalidImageReferenceError(`repository name must not be more than ${MAX_NAME_CHARACTERS} characters`);
  }
  const digest = match[3];
  if (digest !== undefined) checkDigest(digest);
  const slash = name.indexOf("/");
  return {
    domain: name.slice(0, slash),
    path: name.slice(slash + 1),
    tag: match[2] ?? (digest === undefined ? "latest" : undefined),
    digest,
  };
}

/** With `:latest` where it has neither tag nor digest. Source: kubelet's. @throws InvalidImageReferenceError */
export function applyDefaultTag(text: string): string {
  parseImageReference(text);
  const afterName = text.slice(text.lastIndexOf("/") + 1);
  return afterName.includes(":") || afterName.includes("@") ? text : `${text}:latest`;
}

/** Key of registry credentials, e.g. `docker.io/library/busybox`. */
export const repositoryOf = (reference: ImageReference): string => `${reference.domain}/${reference.path}`;

/** `docker.io/library/busybox:1.36`, with the digest where there is one. */
export function fullNameOf({ domain, path, tag, digest }: ImageReference): string {
  return `${domain}/${path}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
}

function splitDomain(text: string): { domain: string; remainder: string } {
  const slash = text.indexOf("/");
  const first = text.slice(0, Math.max(0, slash));
  let domain = DEFAULT_DOMAIN;
  let remainder = text;
  if (slash >= 0 && (/[.:]/.test(first) || first === "localhost" || first.toLowerCase() !== first)) {
    domain = first;
    remainder = text.slice(slash + 1);
  }
  if (domain === LEGACY_DEFAULT_DOMAIN) domain = DEFAULT_DOMAIN;
  if (domain === DEFAULT_DOMAIN && !remainder.includes("/")) remainder = `library/${remainder}`;
  return { domain, remainder };
}

function checkDigest(digest: string): void {
  const [algorithm = "", hex = ""] = digest.split(":");
  const length = DIGEST_HEX_LENGTH[algorithm];
  if (length === undefined) throw new InvalidImageReferenceError("unsupported digest algorithm");
  if (hex.length !== length) throw new InvalidImageReferenceError("invalid checksum digest length");
  if (/[^a-f0-9]/.test(hex)) throw new InvalidImageReferenceError("invalid checksum digest format");
}

/** An image name without its tag, as it is written. */
export function withoutTag(name: string): string {
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  return colon < 0 ? name : name.slice(0, colon);
}
