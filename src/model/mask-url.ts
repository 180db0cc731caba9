/** A URL for logs, errors and answers: credentials and query values (tokens) are hidden. */
export function maskUrl(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]*@/i, "$1***@").replace(/\?[^#]+/, "?***");
}
