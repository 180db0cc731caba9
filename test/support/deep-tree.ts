import { HeldDirectory } from "../../src/base/files/held-directory.ts";

/** Makes directories "d" within each other, deeper than a path can say. */
export function makeDeepTree(path: string, levels: number): void {
  let directory = HeldDirectory.open(path);
  for (let depth = 0; depth < levels; depth++) {
    using outer = directory;
    directory = outer.ensureChild("d", 0o755);
  }
  directory[Symbol.dispose]();
}
