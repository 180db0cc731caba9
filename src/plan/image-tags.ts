/** A tag that is a complete semantic version, with the variant after it: `v1.4.2-alpine3.19`. */
const VERSION_TAG = /^v?(\d+\.\d+\.\d+)([-+_.].*)?$/;

interface VersionTag {
  tag: string;
  /** `1.4.2`. */
  version: string;
  /** `-alpine3.19`; "" for none. */
  variant: string;
}

function parseVersionTag(tag: string): VersionTag | undefined {
  const match = VERSION_TAG.exec(tag);
  return match ? { tag, version: match[1] ?? "", variant: match[2] ?? "" } : undefined;
}

/** The suffix after the version in a tag of any precision: `-alpine` of `1.4-alpine`; "" where there is no version. */
const variantOf = (tag: string): string => /^v?\d+(?:\.\d+){0,2}([-+_.][A-Za-z].*)?$/.exec(tag)?.[1] ?? "";

/**
 * The highest tag in a range of versions. Tags with another variant than the present one (`-alpine`, `-rc.1`) are other
 * images, tags with fewer than three numbers name several versions: neither is taken. Never a version below the present.
 * @param present the tag that runs, or that the manifest has
 * @param range as npm writes it: `~1.4`, `^2`, `>=1.4 <3`
 */
export function pickTag(tags: readonly string[], range: string, present: string): string | undefined {
  const variant = variantOf(present);
  const floor = parseVersionTag(present)?.version;
  let best: VersionTag | undefined;
  for (const tag of tags) {
    const found = parseVersionTag(tag);
    if (!found || found.variant !== variant || !Bun.semver.satisfies(found.version, range)) continue;
    if (floor !== undefined && Bun.semver.order(found.version, floor) < 0) continue;
    if (!best || Bun.semver.order(found.version, best.version) > 0) best = found;
  }
  return best?.tag;
}
