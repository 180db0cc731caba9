/** Longest path of a Unix socket: sockaddr_un.sun_path holds 108 bytes with its final NUL. */
export const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Bun's `fetch` for http: and https: alone, which leaves redirects and decoding to the caller. Bun's own also reads `file:`,
 * `data:`, `blob:` and `s3:`, so that a server could name a file of this machine in a redirect or in a challenge, and inflates
 * what a server compressed, a thousandfold, before a reader can count it. Who sends no Accept-Encoding gets nothing compressed.
 * @throws TypeError for a URL of another scheme, or a success that is compressed unasked; what `fetch` rejects with otherwise
 */
export async function httpFetch(url: URL | string, init: Omit<BunFetchRequestInit, "redirect">): Promise<Response> {
  const { protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`a URL of the scheme "${protocol}" is refused: only http: and https: are fetched`);
  }
  const headers = new Headers(init.headers);
  const isDecoder = headers.has("Accept-Encoding");
  if (!isDecoder) headers.set("Accept-Encoding", "identity");
  const response = await fetch(url, { ...init, headers, decompress: false, redirect: "manual" });
  const encoding = response.headers.get("Content-Encoding") ?? "identity";
  if (isDecoder || encoding === "identity" || init.method === "HEAD") return response;
  await response.body?.cancel();
  if (!response.ok) return new Response(null, response);
  throw new TypeError(`it is compressed (Content-Encoding: ${encoding}), which a server must not do unasked`);
}
