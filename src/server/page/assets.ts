import type { Snapshot } from "../../page/wire.ts";
import { bundlePage } from "./bundle-page.ts" with { type: "macro" };
import type { PageBundle } from "./bundle-page.ts";

/** A file of the page. Its name changes with its contents, but for style sheets that a script names. */
export interface Asset {
  type: string;
  etag: string;
  isImmutable: boolean;
  /** Decoded for each request: browsers keep what they have. */
  gzipped: () => Uint8Array<ArrayBuffer>;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/**
 * A page whose script is lost is loaded again: a browser on the machine itself aborts its requests whenever a container's network
 * interface comes or goes, and a screen that shows the page from the boot on has no keyboard.
 */
const RELOAD = `addEventListener("error", (event) => event.target.tagName === "SCRIPT" && setTimeout(() => location.reload(), 3000), true)`;

/** The only script inside the document, as a source of `script-src`. */
export const INLINE_SCRIPT = `'sha256-${new Bun.CryptoHasher("sha256").update(RELOAD).digest("base64")}'`;

const BUNDLE = bundlePage();
const BASE = "/page/assets/";

/** Files by path, and the document. Parsed at the first use. */
export class Assets {
  #bundle: PageBundle | undefined;

  find(path: string): Asset | undefined {
    if (!path.startsWith(BASE)) return undefined;
    const name = path.slice(BASE.length);
    const file = this.#files()[name];
    const type = TYPES[name.split(".").at(-1) ?? ""];
    if (!file || !type || !Object.hasOwn(this.#files(), name)) return undefined;
    return {
      type,
      etag: `"${file.etag}"`,
      isImmutable: name.endsWith(".js"),
      gzipped: () => Uint8Array.fromBase64(file.gzipped),
    };
  }

  /** Name of the script that starts the page: another one for each version of the page. */
  get build(): string {
    return this.#loaded().entry;
  }

  /** The document. @param state shown before the stream has answered; absent: nothing may be shown yet */
  document(state: Snapshot | undefined): string {
    const { entry, style } = this.#loaded();
    return toDocument(entry, style, state);
  }

  #files(): PageBundle["files"] {
    return this.#loaded().files;
  }

  #loaded(): PageBundle {
    this.#bundle ??= JSON.parse(BUNDLE) as PageBundle;
    return this.#bundle;
  }
}

/** A data block is not a script: the policy that forbids inline scripts does not concern it. */
const toStateBlock = (state: Snapshot): string =>
  `<script type="application/json" id="state">${JSON.stringify(state).replaceAll("<", "\\u003c")}</script>`;

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='3' fill='%230b62c4'/%3E%3Cpath d='M4 3v10M12 3 5 8l7 5' fill='none' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E";

const toDocument = (entry: string, style: string, state: Snapshot | undefined): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>kubelet-ts</title>
<link rel="icon" href="${ICON}">
<script>${RELOAD}</script>
<script type="module" src="${BASE}${entry}"></script>
<style>${style}</style>
</head>
<body>
<div id="app"><header><span class="brand">kubelet-ts</span></header></div>
<noscript>This page needs JavaScript. The same data: <code>kubelet-ts get pods</code>.</noscript>
${state ? toStateBlock(state) : ""}
</body>
</html>
`;
