/** Masks user info, query and fragment of a URL; of another text what precedes its last `@`. */
export function maskUrl(url: string): string {
  const [, scheme = "", rest = url] = /^([a-z][a-z0-9+.-]*:[/\\]*)([\s\S]*)$/i.exec(url) ?? [];
  const authority = URL.canParse(url) ? (/^[^/\\?#]*/.exec(rest)?.[0] ?? "") : rest;
  const at = authority.lastIndexOf("@");
  const shown = at < 0 || /^unix:/i.test(scheme) ? url : `${scheme}***${rest.slice(at)}`;
  return shown.replace(/\?[^#]+/, "?***").replace(/#[\s\S]+$/, "#***");
}

/** Whether a manifest argument is a URL instead of a path. */
export const isManifestUrl = (place: string): boolean => /^(?:unix:|https?:\/\/)/i.test(place);
