import { createHash } from "node:crypto";
import { bundlePage } from "./bundle-page.ts" with { type: "macro" };

/** A file of the page, ready to be sent. */
export interface Asset {
  type: string;
  etag: string;
  body: Uint8Array<ArrayBuffer>;
  gzipped: Uint8Array<ArrayBuffer>;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

const BUNDLE = bundlePage();

/** Files by path. Compressed at the first request; keeps about 0.7 MB. */
export function loadAssets(): ReadonlyMap<string, Asset> {
  const files = JSON.parse(BUNDLE) as Record<string, string>;
  const assets = Object.entries(files).map(([name, text]) => {
    const type = TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
    return [`/page/assets/${name}`, toAsset(type, text)] as const;
  });
  return new Map([["/", toAsset("text/html; charset=utf-8", INDEX)], ...assets]);
}

function toAsset(type: string, text: string): Asset {
  const body = new TextEncoder().encode(text);
  const etag = `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"`;
  return { type, etag, body, gzipped: Bun.gzipSync(body) };
}

const INDEX = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>kubelet-ts</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/assets/page.css">
<script type="module" src="/page/assets/main.js"></script>
</head>
<body>
<div id="app"><header><span class="brand">kubelet-ts</span></header></div>
<noscript>This page needs JavaScript. The same data: <code>kubelet-ts get pods</code>.</noscript>
</body>
</html>
`;
