import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The part of the page that the executable contains. */
export interface PageBundle {
  /** Name of the script that starts the page. The terminal and the charts are chunks of their own. */
  entry: string;
  /** Part of the document, so that it is painted without another request. */
  style: string;
  /** Files by name; `gzipped` in base64. */
  files: Record<string, { etag: string; gzipped: string }>;
}

/** Bundles src/page for browsers. A macro: it runs when the program is built, or run from source. @returns JSON of {@link PageBundle}, or of `{ error }` */
export function bundlePage(): string {
  const page = join(import.meta.dir, "..", "..", "page");
  const directory = mkdtempSync(join(tmpdir(), "kubelet-ts-page-"));
  try {
    const { exitCode, stderr } = Bun.spawnSync([
      process.execPath,
      "build",
      "--target=browser",
      "--format=esm",
      "--minify",
      "--splitting",
      "--define=process.env.NODE_ENV='production'",
      "--entry-naming=[name]-[hash].[ext]",
      "--chunk-naming=part-[name]-[hash].[ext]",
      `--outdir=${directory}`,
      join(page, "main.tsx"),
    ]);
    if (exitCode !== 0) return JSON.stringify({ error: stderr.toString() });
    const modules = join(import.meta.dir, "..", "..", "..", "node_modules");
    const files: PageBundle["files"] = {};
    const add = (name: string, text: string) => {
      const etag = createHash("sha256").update(text).digest("hex").slice(0, 16);
      files[name] = { etag, gzipped: Buffer.from(Bun.gzipSync(Buffer.from(text), { level: 9 })).toString("base64") };
    };
    const names = readdirSync(directory);
    for (const name of names) add(name, readFileSync(join(directory, name), "utf8"));
    add("terminal.css", readFileSync(join(modules, "@xterm", "xterm", "css", "xterm.css"), "utf8"));
    const styles = [join(modules, "uplot", "dist", "uPlot.min.css"), join(page, "page.css")];
    const entry = names.find((name) => name.startsWith("main-")) ?? "";
    return JSON.stringify({
      entry,
      style: styles.map((file) => readFileSync(file, "utf8")).join("\n"),
      files,
    } satisfies PageBundle);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
