/** How the images of a pod are kept up to date. */
export type ImageUpdatePolicy =
  | { kind: "never" }
  /** The digest that the registry has for the tag of the manifest. */
  | { kind: "digest" }
  /** The highest tag of the repository in a range of semantic versions. */
  | { kind: "semver"; range: string };

/** A range as npm writes it, of digits and operators only: what is not one never matches silently. */
const RANGE = /^[~^<>=|\-\sxX*.\dv]+$/;

/** `never`, `digest` or `semver:RANGE`. @returns undefined for anything else */
export function parseImageUpdatePolicy(text: string): ImageUpdatePolicy | undefined {
  if (text === "never" || text === "digest") return { kind: text };
  const range = /^semver:(.*)$/.exec(text)?.[1]?.trim();
  if (range === undefined || !/\d|^[xX*]$/.test(range) || !RANGE.test(range)) return undefined;
  return { kind: "semver", range };
}
