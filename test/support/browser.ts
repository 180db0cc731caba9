import { type Browser, chromium } from "playwright-core";

/** Chromium as Debian packages it; undefined where it is not installed. */
const chromiumPath = (): string | undefined => Bun.which("chromium") ?? undefined;

/** A name that the browser resolves to this machine, as an attacker's name server can make it do. */
export const REBOUND_HOST = "rebound.test";

/** A headless Chromium that talks to no host of its own accord. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath() ?? "chromium",
    args: [
      // Root has no sandbox.
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--host-resolver-rules=MAP ${REBOUND_HOST} 127.0.0.1`,
    ],
  });
}
