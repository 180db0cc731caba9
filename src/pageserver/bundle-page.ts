import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Bundles src/page for browsers. A macro: it runs when the program is built (and when it is run from source), and its
 * answer becomes a constant, so that the executable needs no other file.
 * @returns JSON: file name to text. `main.js` is the entry; the terminal is a chunk of its own.
 */
export function bundlePage(): string {
  const page = join(import.meta.dir, "..", "page");
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
      "--chunk-naming=[name]-[hash].[ext]",
      `--outdir=${directory}`,
      join(page, "main.tsx"),
    ]);
    if (exitCode !== 0) return JSON.stringify({ error: stderr.toString() });
    const modules = join(import.meta.dir, "..", "..", "node_modules");
    const styles = [
      join(modules, "uplot", "dist", "uPlot.min.css"),
      join(modules, "@xterm", "xterm", "css", "xterm.css"),
    ];
    const files: Record<string, string> = {};
    for (const name of readdirSync(directory)) files[name] = readFileSync(join(directory, name), "utf8");
    files["page.css"] = [...styles, join(page, "page.css")].map((file) => readFileSync(file, "utf8")).join("\n");
    return JSON.stringify(files);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
