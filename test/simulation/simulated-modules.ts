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

/** A planted mistake: a patch of one place in one file of src. */
export interface Mutation {
  /** `src/plan/stop-pod.ts`. */
  file: string;
  before: string;
  after: string;
}

/** @throws Error when the patch has several hunks */
export function readMutant(name: string): Mutation {
  const patch = readFileSync(join(HERE, `mutants/${name}.patch`), "utf8");
  const [head = "", hunk = "", ...more] = patch.split(/^@@.*@@.*\n/m);
  const file = /^\+\+\+ b\/(.+)$/m.exec(head)?.[1];
  if (file === undefined || more.length > 0) throw new Error(`${name}.patch is not a patch of one place`);
  const lines = hunk.split("\n").filter((line) => line !== "");
  const side = (dropped: string) =>
    lines
      .filter((line) => !line.startsWith(dropped))
      .map((line) => line.slice(1))
      .join("\n");
  return { file, before: side("+"), after: side("-") };
}

/** @throws Error when the place is not there, or there twice */
export function mutate(text: string, { file, before, after }: Mutation): string {
  if (text.split(before).length !== 2) throw new Error(`the place of the mistake is not in ${file}`);
  return text.replace(before, () => after);
}

/** Lets every file of src import the simulated machine instead of the runtime's modules. Before the first import of src. */
export function replaceModules(mutant?: string): void {
  const mutation = mutant === undefined ? undefined : readMutant(mutant);
  plugin({
    name: "simulated machine",
    setup(build) {
      build.onLoad({ filter: new RegExp(`^${SRC}.*\\.tsx?$`) }, ({ path }) => {
        const replaced = REPLACED_FILES[path.slice(SRC.length)];
        let contents = replaced ?? readFileSync(path, "utf8");
        if (mutation && path === join(SRC, "..", mutation.file)) contents = mutate(contents, mutation);
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
