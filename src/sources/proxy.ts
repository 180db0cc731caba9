type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for a URL by the usual variables, as Go programs read them: HTTP_PROXY, HTTPS_PROXY, NO_PROXY, lower case
 * too. NO_PROXY: `*`, host names (with their sub-domains), addresses, each with or without a port. Loopback is always direct.
 */
export function proxyFor(url: URL, env: Environment): string | undefined {
  const pick = (name: string) => env[name] || env[name.toLowerCase()] || undefined;
  const proxy = url.protocol === "https:" ? pick("HTTPS_PROXY") : pick("HTTP_PROXY");
  if (!proxy || isLoopback(url.hostname) || isExempt(url, pick("NO_PROXY") ?? "")) return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || /^127\./.test(host) || host === "[::1]";
}

function isExempt(url: URL, list: string): boolean {
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  for (const entry of list.split(",")) {
    const [, name = "", wantedPort] = /^\s*\*?\.?(\[[^\]]*\]|[^:\s]*)(?::(\d+))?\s*$/.exec(entry) ?? [];
    if (entry.trim() === "*") return true;
    if (name === "" || (wantedPort !== undefined && wantedPort !== port)) continue;
    const host = url.hostname.toLowerCase();
    const wanted = name.toLowerCase();
    if (host === wanted || host.endsWith(`.${wanted}`)) return true;
  }
  return false;
}
