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
  "real-cluster",
  "release",
  "scripts",
  "support",
  "vm",
]);

/** Small files with one user in their folder that stay files of their own, and why. */
const SMALL_FILES: Readonly<Record<string, string>> = {
  "apiserver/openapi/openapi-answer.ts": "loaded when it is asked for",
  "app/configuration-metrics.ts": "a file for the metrics of each subject",
  "cli/commands/version.ts": "a file for each command",
  "page/visibility.ts": "one observer for the page",
  "prober/exec-probe.ts": "a file for each kind of probe",
  "prober/tcp-probe.ts": "a file for each kind of probe",
  "workloads/replica-set.ts": "a file for each controller",
};
const FEW_LINES = 35;

/** Imports that each folder may have: folders and packages. A folder may import itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  api: ["valibot"],
  text: ["croner"],
  files: ["text"],
  logging: ["model"],
  concurrency: ["model"],
  model: ["api"],
  yaml: [],
  manifest: ["api", "model", "text", "yaml", "valibot"],
  // Which sysctls need a flag is reported by the list of runtime/. Containers of others have the shapes of docker/.
  import: ["api", "text", "valibot", "docker/container-schema.ts", "docker/shapes.ts", "runtime/sysctls.ts"],
  plan: ["api", "model", "text"],
  // A status reports restarts and back-off, which plan/ decides.
  status: ["api", "model", "plan", "text"],
  cgroups: ["model", "text", "files"],
  metrics: ["api", "model", "cgroups"],
  stats: ["api", "model", "text", "cgroups", "files", "metrics"],
  cadvisor: ["api", "model", "text", "cgroups", "stats", "metrics"],
  docker: ["valibot", "concurrency", "files", "text"],
  runtime: ["docker", "plan", "model", "api", "concurrency", "text", "files", "yaml", "host/run-program.ts"],
  sources: ["manifest", "yaml/source-text.ts", "logging", "model", "api", "concurrency", "text", "files"],
  cni: ["api", "model", "plan", "text", "files", "logging", "host/run-program.ts", "valibot"],
  volumes: ["model", "api", "plan", "text", "concurrency", "files"],
  prober: ["model", "api", "plan", "concurrency", "text", "files"],
  host: ["model", "files", "text", "cgroups/proc.ts"],
  // The edit rules hash the requests to the engine: a pure mapping of runtime/.
  kubelet: [
    "api",
    "files",
    "logging",
    "model",
    "manifest",
    "plan",
    "status",
    "stats",
    "concurrency",
    "files",
    "text",
    "runtime/hashes.ts",
    "runtime/resources.ts",
    "runtime/security.ts",
  ],
  printers: ["api"],
  workloads: ["api", "model", "plan", "text"],
  apiserver: [
    "files",
    "host/run-program.ts",
    "sources",
    "logging",
    "valibot",
    "@valibot/to-json-schema",
    "ws",
    // The listener and the streams into containers are those of the authenticated port.
    "server/answer.ts",
    "server/client-identity.ts",
    "server/listener.ts",
    "server/request-body.ts",
    "server/serving-certificate.ts",
    "server/stream-answers.ts",
    "server/stream-query.ts",
    "status/log-container.ts",
    "@peculiar/x509",
    "reflect-metadata",
    "api",
    "model",
    "manifest",
    "text",
    "yaml",
    "printers",
    "plan/node-port.ts",
  ],
  config: ["api", "model", "manifest", "plan", "text", "files", "yaml"],
  server: [
    "api",
    "model",
    "config",
    "status",
    "stats",
    "metrics",
    "cadvisor",
    "concurrency",
    "text",
    "files",
    "ws",
    "spdy-transport/lib/spdy-transport/protocol/spdy/dictionary.js",
  ],
  // A source of pods, and the node that runs them as an API server sees it.
  cluster: [
    "api",
    "model",
    "concurrency",
    "files",
    "logging",
    "manifest",
    "plan",
    "sources",
    "status",
    "text",
    "workloads/claims.ts",
    "yaml",
    "valibot",
    "@kubernetes/client-node",
    "@peculiar/x509",
    "reflect-metadata",
  ],
  install: ["files", "host/run-program.ts"],
  bundle: ["docker", "valibot"],
  doctor: [
    "api",
    "model",
    "docker",
    "files",
    "host",
    "install",
    "manifest",
    "plan/object-references.ts",
    "sources/manifest-files.ts",
    "text",
  ],
  // Runs in browsers, with the types that it receives.
  page: [
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
  pageserver: ["api", "cgroups/cgroup-stats.ts", "files", "model", "server", "stats", "status", "text", "page/wire.ts"],
};

/** Allowed beyond the table, types only: folders, or single files. */
const MAY_IMPORT_TYPE: Readonly<Record<string, readonly string[]>> = {
  docker: ["model/clock.ts", "model/container-access.ts"],
  // The loops get their effects as parameters: they know the types and never construct one.
  kubelet: ["runtime", "prober"],
};

/** Folders of decisions: nothing in them touches files, sockets, processes or timers. */
const DECISIONS = ["api", "model", "text", "yaml", "manifest", "import", "plan", "status", "printers", "workloads"];
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
  "bundle/read-bundle.ts": "slices of checked size: a header, an index of at most 16 MiB",
  "cli/commands/bundle.ts": "our own program, streamed",
  "cli/commands/install.ts": "manifests of a verified bundle, of checked size",
  "page/": "runs in browsers and asks its own server",
  "files/held-directory.ts": "files of the kernel: /proc/self/fdinfo",
  "cgroups/open-file-reader.ts": "files of the kernel: cgroups and /proc",
  "cgroups/read-text.ts": "files of the kernel: cgroups and /proc",
  "host/oom-group.ts": "files of the kernel: cgroups",
  "app/assembly/build-local-api.ts": "an answer of our own route",
  "host/pod-dialer.ts": "the error output of our own child process",
  "host/run-program.ts": "limits the output of the program when it starts it",
  "apiserver/pki/make-certificates.ts": "the order of our own parent process",
  "pageserver/bundle-page.ts": "runs when the executable is built",
  "server/cadvisor-routes.ts": "ServerRequest.text, limited by the server",
  "runtime/container-create-body.ts": "a parameter: a text of container-inputs.ts, which limits it",
  "runtime/security.ts": "a parameter: a text of container-inputs.ts, which limits it",
  "runtime/image-preload.ts": "the archive is streamed to the engine",
  "import/compose.ts": "a parameter of the command, which limits it",
  "import/compose-service.ts": "a parameter of the command, which limits it",
  "import/compose-volumes.ts": "a parameter of the command, which limits it",
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

function isAllowed(file: SourceFile, { specifier, typeOnly }: Import): boolean {
  const allowed = MAY_IMPORT[file.folder];
  if (allowed === undefined) return true; // app, cli and main.ts put everything together.
  if (isBuiltin(specifier)) return true; // Judged on its own below.
  if (!isRelative(specifier)) return allowed.includes(specifier);
  const target = resolve(file, specifier);
  const folder = target.split("/")[0] ?? "";
  if (folder === file.folder || allowed.includes(folder) || allowed.includes(target)) return true;
  return typeOnly && (MAY_IMPORT_TYPE[file.folder] ?? []).some((known) => known === folder || known === target);
}

describe("the plan of the house", () => {
  test("every folder is known", () => {
    const known = new Set([...Object.keys(MAY_IMPORT), "app", "cli", ""]);
    expect(files.filter((file) => !known.has(file.folder)).map((file) => file.path)).toEqual([]);
    expect(files.length).toBeGreaterThan(0);
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
      .filter((file) => DECISIONS.includes(file.folder))
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
    expect(small.map(({ path }) => path)).toEqual(Object.keys(SMALL_FILES));
  });

  test("the walks of docs/architecture.md name files that exist, and count them", () => {
    const doc = readFileSync(join(import.meta.dir, "../docs/architecture.md"), "utf8");
    const section = /## Four walks\n(.*?)\n## /s.exec(doc)?.[1] ?? "";
    const walks = Array.from(section.matchAll(/\((\d+)\): (.*?)(?=\n\n|$)/gs), ([, count, list = ""]) => {
      const names = list.split("·").flatMap((group) => {
        const [, folder = "", rest = ""] = /^\s*(?:`(\w+\/)`)?\s*(.*?)\s*$/s.exec(group) ?? [];
        return rest.split(",").map((name) => ({ folder, name: name.replace(/\(.*\)/, "").trim() }));
      });
      return { count: Number(count), names };
    });
    expect(walks).toHaveLength(4);
    for (const { count, names } of walks) {
      const missing = names.filter(
        ({ folder, name }) => !files.some(({ path }) => path.startsWith(folder) && `/${path}`.endsWith(`/${name}.ts`)),
      );
      expect({ missing, count: names.length }).toEqual({ missing: [], count });
    }
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
