/** Masks credentials and query values (tokens) of a URL, for logs, errors and responses. */
export function maskUrl(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]*@/i, "$1***@").replace(/\?[^#]+/, "?***");
}

/** Whether a manifest argument is a URL instead of a path. */
export const isManifestUrl = (place: string): boolean => /^(?:unix:|https?:\/\/)/i.test(place);
