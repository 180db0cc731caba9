/** Longest path of a Unix socket: sockaddr_un.sun_path holds 108 bytes with its final NUL. */
export const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Bun's `fetch` for http: and https: alone, which leaves redirects to the caller. Bun's own also reads `file:`, `data:`,
 * `blob:` and `s3:`, so that a server could name a file of this machine in a redirect or in a challenge.
 * @throws TypeError for a URL of another scheme; what `fetch` rejects with otherwise
 */
export async function httpFetch(url: URL | string, init: Omit<BunFetchRequestInit, "redirect">): Promise<Response> {
  const { protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`a URL of the scheme "${protocol}" is refused: only http: and https: are fetched`);
  }
  return await fetch(url, { ...init, redirect: "manual" });
}
