/** A URL for logs, errors and answers: credentials and query values (tokens) are hidden. */
export function maskUrl(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]*@/i, "$1***@").replace(/\?[^#]+/, "?***");
}

/** Whether a place of manifests is a URL, not a path. */
export const isManifestUrl = (place: string): boolean => /^(?:unix:|https?:\/\/)/i.test(place);
