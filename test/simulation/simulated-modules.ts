import { readFileSync } from "node:fs";
import { join } from "node:path";
import { plugin } from "bun";

const HERE = import.meta.dir;
const SRC = join(HERE, "../../src/");

/** Modules of the runtime that the program imports, by what replaces them here. */
const REPLACED: Readonly<Record<string, string>> = {
  "node:fs": "modules/fs.ts",
  "node:fs/promises": "modules/fs-promises.ts",
  "node:os": "modules/os.ts",
  "node:crypto": "modules/crypto.ts",
};

/** Files of src that call the kernel by other ways. */
const REPLACED_FILES: Readonly<Record<string, string>> = {
  "base/host/flock.ts": "export const tryFlock = async () => true;\nexport const libcPath = () => 'libc.so.6';\n",
};

/** Lets every file of src import the simulated machine instead of the runtime's modules. Before the first import of src. */
export function replaceModules(): void {
  plugin({
    name: "simulated machine",
    setup(build) {
      build.onLoad({ filter: new RegExp(`^${SRC}.*\\.tsx?$`) }, ({ path }) => {
        const replaced = REPLACED_FILES[path.slice(SRC.length)];
        let contents = replaced ?? readFileSync(path, "utf8");
        for (const [name, file] of Object.entries(REPLACED)) {
          contents = contents.replaceAll(`from "${name}"`, `from "${join(HERE, file)}"`);
        }
        // The page is compiled into the program by a macro, which no one opens here.
        contents = contents.replace(/^import \{ bundlePage \}.*$/m, "const bundlePage = () => '{}';");
        return { contents, loader: path.endsWith("x") ? "tsx" : "ts" };
      });
    },
  });
}
