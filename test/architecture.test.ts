import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const SRC = join(import.meta.dir, "..", "src");
const TEST = import.meta.dir;

/** Folders of test/ that mirror no folder of src/. */
const WITHOUT_SOURCE: ReadonlySet<string> = new Set([
  "fixtures",
  "fuzz",
  "integration",
  "long",
  "real-cluster",
  "release",
  "scripts",
  "support",
  "vm",
]);

/** Small files with one user in their folder that stay files of their own, and why. */
const SMALL_FILES: Readonly<Record<string, string>> = {
  "apiserver/openapi/openapi-response.ts": "loaded when it is asked for",
  "cli/commands/restart.ts": "a file for each command",
  "cli/commands/version.ts": "a file for each command",
  "controllers/replica-set.ts": "a file for each controller",
};
const FEW_LINES = 35;

/**
 * Rooms of src/, from top to bottom, each with what its files may import besides the room itself: rooms, folders of rooms
 * and packages. A folder with a row of its own follows that row instead of its room's. No import leads to a room above.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  cli: [
    "daemon",
    "apiserver",
    "server",
    "kubelet",
    "docker",
    "plan",
    "sources",
    "config",
    "manifest",
    "base",
    "citty",
    "valibot",
    "ws",
    "yaml",
  ],
  // Files of other programs to manifests: knows the shapes of the engine's containers, and no command.
  "cli/import": ["docker/engine", "plan/sysctls.ts", "base/text", "valibot"],
  "cli/bundle": ["docker/engine", "valibot"],
  // The one place that puts everything together.
  daemon: [
    "apiserver",
    "cluster",
    "server",
    "page",
    "kubelet",
    "controllers",
    "docker",
    "plan",
    "sources",
    "config",
    "stats",
    "manifest",
    "base",
    "age-encryption",
    "consola/core",
    "valibot",
    "yaml",
  ],
  "daemon/doctor": ["daemon/install", "config/option-table.ts", "docker/engine", "manifest", "plan", "sources", "base"],
  "daemon/install": ["base/files", "base/host"],
  // The listener and the streams into containers are those of the authenticated port.
  apiserver: [
    "server",
    "sources",
    "plan",
    "manifest",
    "base",
    "@peculiar/x509",
    "@valibot/to-json-schema",
    "reflect-metadata",
    "valibot",
    "ws",
    "yaml",
  ],
  "apiserver/printers": ["base/api"],
  // A source of pods, and the node that runs them as an API server sees it.
  cluster: [
    "controllers",
    "config/option-table.ts",
    "plan",
    "sources",
    "manifest",
    "base",
    "@kubernetes/client-node",
    "valibot",
  ],
  server: ["config", "plan/status", "stats", "base", "ws"],
  "server/page": ["server", "page", "plan/status", "stats", "base"],
  // Runs in browsers. Of the kubelet it knows types of objects alone.
  page: [
    "base/api",
    "preact",
    // Imported by the JSX transform where no tsconfig is read.
    "react",
    "preact/hooks",
    "preact/jsx-dev-runtime",
    "preact/jsx-runtime",
    "uplot",
    "@xterm/xterm",
    "@xterm/addon-fit",
  ],
  kubelet: [
    "docker/image-manager.ts",
    "docker/log-links.ts",
    "config/option-table.ts",
    "plan",
    "stats",
    "manifest",
    "base",
  ],
  "kubelet/prober": ["plan", "base"],
  "kubelet/volumes": ["plan", "base"],
  "kubelet/cni": ["plan", "base", "valibot"],
  controllers: ["plan", "base"],
  docker: ["plan", "config/option-table.ts", "manifest/yaml", "base"],
  // The Engine API. It knows no pods.
  "docker/engine": ["base/files", "base/model/clock.ts", "base/model/container-access.ts", "base/text", "valibot"],
  plan: ["config/option-table.ts", "base/api", "base/model", "base/text"],
  // A status reports restarts and back-off, which plan/ decides.
  "plan/status": ["plan", "base/api", "base/model", "base/text"],
  sources: ["manifest", "config/option-table.ts", "base"],
  config: ["manifest/yaml", "base"],
  stats: ["base"],
  "stats/cgroups": ["base/host", "base/text"],
  manifest: ["base/api", "base/model", "base/text", "valibot"],
  "manifest/yaml": [],
  "base/api": ["valibot"],
  "base/text": ["croner", "yaml"],
  "base/files": ["base/text"],
  "base/logging": ["base/model"],
  "base/concurrency": ["base/model"],
  "base/model": ["base/api"],
  "base/host": ["base/model", "base/files", "base/text"],
};

/** Rooms, top to bottom. */
const ROOMS = [
  "",
  "cli",
  "daemon",
  "apiserver",
  "cluster",
  "server",
  "page",
  "kubelet",
  "controllers",
  "docker",
  "plan",
  "sources",
  "config",
  "stats",
  "manifest",
  "base",
];

/** Folders of decisions: nothing in them touches files, sockets, processes or timers. */
const DECISIONS = [
  "base/api",
  "base/model",
  "base/text",
  "manifest",
  "cli/import",
  "plan",
  "apiserver/printers",
  "controllers",
];
const BUILTINS_WITHOUT_EFFECTS = [
  "node:path",
  "node:path/posix",
  "node:crypto",
  "node:net",
  "node:buffer",
  "node:util",
];

/** Files that read without one of the helpers that have a limit, and the reason. To shrink, never to grow. */
const READS_WITHOUT_LIMIT: Readonly<Record<string, string>> = {
  "cli/bundle/bundle-file.ts": "slices of checked size: a header, an index of at most 16 MiB",
  "cli/commands/bundle.ts": "our own program, streamed",
  "cli/commands/install.ts": "manifests of a verified bundle, of checked size",
  "page/": "runs in browsers and asks its own server",
  "base/files/held-directory.ts": "files of the kernel: /proc/self/fdinfo",
  "stats/cgroups/open-file-reader.ts": "files of the kernel: cgroups and /proc",
  "stats/cgroups/read-text.ts": "files of the kernel: cgroups and /proc",
  "base/host/oom-group.ts": "files of the kernel: cgroups",
  "daemon/assembly/build-local-api.ts": "an answer of our own route",
  "base/host/pod-dialer.ts": "the error output of our own child process",
  "base/host/run-program.ts": "limits the output of the program when it starts it",
  "apiserver/pki/make-certificates.ts": "the order of our own parent process",
  "server/page/bundle-page.ts": "runs when the executable is built",
  "server/cadvisor-routes.ts": "ServerRequest.text, limited by the server",
  "base/model/container-engine.ts": "a parameter: a text of container-inputs.ts, which limits it",
  "docker/security.ts": "a parameter: a text of container-inputs.ts, which limits it",
  "docker/image-preload.ts": "the archive is streamed to the engine",
  "cli/import/compose.ts": "a parameter of the command, which limits it",
  "cli/import/compose-service.ts": "a parameter of the command, which limits it",
  "cli/import/compose-volumes.ts": "a parameter of the command, which limits it",
};

interface Import {
  specifier: string;
  typeOnly: boolean;
}

interface SourceFile {
  /** Below src/, e.g. `plan/back-off.ts`. */
  path: string;
  /** "" for main.ts. */
  folder: string;
  text: string;
  imports: Import[];
}

const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts" }),
  tsx: new Bun.Transpiler({
    loader: "tsx",
    tsconfig: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
  }),
};

function readSource(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), "utf8");
  const values = transpilers[path.endsWith("x") ? "tsx" : "ts"].scanImports(text).map((found) => found.path);
  // The transpiler drops what is only a type, so those are looked for in the text.
  const statements = text.matchAll(/^(?:import|export)\s(?:[^"';]*?\sfrom\s)?["']([^"']+)["']/gm);
  const all = new Set([...values, ...Array.from(statements, (match) => match[1] ?? "")]);
  return {
    path,
    folder: path.includes("/") ? (path.split("/")[0] ?? "") : "",
    text,
    imports: [...all].map((specifier) => ({ specifier, typeOnly: !values.includes(specifier) })),
  };
}

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path))
  .sort()
  .map(readSource);

const isRelative = (specifier: string) => specifier.startsWith(".");

/** Below src/; starts with `../` when it lies outside. */
const resolve = (file: SourceFile, specifier: string) => relative(SRC, join(SRC, dirname(file.path), specifier));

const isBuiltin = (specifier: string) => /^(node|bun):|^bun$/.test(specifier);

/** The row of the table for a file: of its folder, or of its room. */
const rowOf = (path: string): string => {
  const parts = path.split("/").slice(0, -1);
  while (parts.length > 0 && !(parts.join("/") in MAY_IMPORT)) parts.pop();
  return parts.join("/");
};

const isBelow = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);

function isAllowed(file: SourceFile, { specifier }: Import): boolean {
  if (file.folder === "") return true; // main.ts starts one of the programs.
  if (isBuiltin(specifier)) return true; // Judged on its own below.
  const row = rowOf(file.path);
  const allowed = MAY_IMPORT[row] ?? [];
  if (!isRelative(specifier)) return allowed.includes(specifier);
  const target = resolve(file, specifier);
  // Outside src/ is only package.json.
  return isBelow(target, row) || target.startsWith("..") || allowed.some((place) => isBelow(target, place));
}

describe("the plan of the house", () => {
  test("every folder has a row", () => {
    expect(files.filter(({ path, folder }) => folder !== "" && rowOf(path) === "").map(({ path }) => path)).toEqual([]);
    expect(files.length).toBeGreaterThan(0);
  });

  test("no import leads to a room above", () => {
    const wrong = files.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => isRelative(specifier) && !resolve(file, specifier).startsWith(".."))
        .map(({ specifier }) => resolve(file, specifier))
        .filter((target) => ROOMS.indexOf(target.split("/")[0] ?? "") < ROOMS.indexOf(file.folder))
        .map((target) => `${file.path} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test("imports keep to the table", () => {
    const wrong = files.flatMap((file) =>
      file.imports
        .filter((found) => !isAllowed(file, found))
        .map(
          (found) =>
            `${file.path} imports ${isRelative(found.specifier) ? resolve(file, found.specifier) : found.specifier}`,
        ),
    );
    expect(wrong).toEqual([]);
  });

  test("folders of decisions touch nothing of the world", () => {
    const wrong = files
      .filter((file) => DECISIONS.some((folder) => isBelow(file.path, folder)))
      .flatMap((file) =>
        file.imports
          .filter(({ specifier }) => isBuiltin(specifier) && !BUILTINS_WITHOUT_EFFECTS.includes(specifier))
          .map(({ specifier }) => `${file.path} imports ${specifier}`),
      );
    expect(wrong).toEqual([]);
  });

  test("imports form no circle, not even of types", () => {
    const graph = new Map(
      files.map((file) => [
        file.path,
        file.imports.filter((found) => isRelative(found.specifier)).map((found) => resolve(file, found.specifier)),
      ]),
    );
    expect(findCircle(graph)).toEqual([]);
  });

  test("relative imports name a file that exists, with its extension", () => {
    const known = new Set(files.map((file) => file.path));
    const wrong = files.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => isRelative(specifier) && !/\.(json|html|css|txt)$/.test(specifier))
        .filter(({ specifier }) => !known.has(resolve(file, specifier)))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });

  test("files and answers are read by helpers with a limit", () => {
    const unbounded = /(?<!#)\b(?:readFileSync|readFile|Bun\.file)\(|\.(?:text|json|bytes|arrayBuffer|blob)\(\)/;
    const found = files.filter(({ text }) => unbounded.test(text)).map(({ path }) => path);
    const isAllowed = (path: string) => path in READS_WITHOUT_LIMIT || path.startsWith("page/");
    expect(found.filter((path) => !isAllowed(path))).toEqual([]);
    const unused = Object.keys(READS_WITHOUT_LIMIT).filter((entry) => !found.some((path) => path.startsWith(entry)));
    expect(unused).toEqual([]);
  });

  test("a test is named after its source file, with a topic where a file has several tests", () => {
    const sources = files.map(({ path }) => path.replace(/\.tsx?$/, ""));
    const tests = readdirSync(TEST, { recursive: true, encoding: "utf8" })
      .filter((path) => /\/[^/]+\.test\.tsx?$/.test(path))
      .filter((path) => !WITHOUT_SOURCE.has(path.split("/")[0] ?? ""));
    const isMirror = (path: string) =>
      sources.some((source) => path.startsWith(`${source}.test.`) || path.startsWith(`${source}-`));
    expect(tests.filter((path) => !isMirror(path)).sort()).toEqual([]);
  });

  test("docs/architecture.md names every folder", () => {
    const doc = readFileSync(join(import.meta.dir, "../docs/architecture.md"), "utf8");
    const folders = new Set(files.map(({ folder }) => folder).filter((folder) => folder !== ""));
    expect([...folders].filter((folder) => !doc.includes(`${folder}/`))).toEqual([]);
  });

  test("a small file with one user is part of that user", () => {
    const users = Map.groupBy(
      files.flatMap((file) => file.imports.map((found) => ({ user: file, target: resolve(file, found.specifier) }))),
      ({ target }) => target,
    );
    const small = files.filter(({ path, folder, text }) => {
      const [only, ...others] = new Set((users.get(path) ?? []).map(({ user }) => user));
      return text.split("\n").length <= FEW_LINES && others.length === 0 && only?.folder === folder;
    });
    expect(small.map(({ path }) => path)).toEqual(Object.keys(SMALL_FILES).sort());
  });

  test("there are no default exports", () => {
    expect(files.filter((file) => /^export default\b/m.test(file.text)).map((file) => file.path)).toEqual([]);
  });

  test("files are kebab-case, and none is a drawer for odds and ends", () => {
    const wrong = files.filter(({ path }) => {
      const name =
        path
          .split("/")
          .at(-1)
          ?.replace(/\.tsx?$/, "") ?? "";
      return !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || /^(utils?|helpers?|commons?|misc|index)$/.test(name);
    });
    expect(wrong.map((file) => file.path)).toEqual([]);
  });
});

/** One way round, file by file, or nothing. */
function findCircle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    for (const next of graph.get(path) ?? []) {
      const circle = visit(next, [...trail, path]);
      if (circle.length > 0) return circle;
    }
    done.add(path);
    return [];
  };
  for (const path of graph.keys()) {
    const circle = visit(path, []);
    if (circle.length > 0) return circle;
  }
  return [];
}
