import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const SRC = join(import.meta.dir, "..", "src");
const TEST = import.meta.dir;

/** Folders of test/ that mirror no folder of src/. */
const WITHOUT_SOURCE = "fixtures fuzz integration long real-cluster release scripts simulation support vm".split(" ");

/** Small files with one user in their folder that stay files of their own, and why. */
const SMALL_FILES: Readonly<Record<string, string>> = {
  "config/option-rows/cluster.ts": "a file for each subject of options",
  "config/option-rows/logging.ts": "a file for each subject of options",
  "server/page/bundle-page.ts": "runs when the executable is built: a macro",
};
/** Such a file has at most this many lines. */
const FEW_LINES = 80;

/**
 * Rooms of src/, from top to bottom, each with what its files may import besides the room itself: rooms, folders of rooms
 * and packages. A folder with a row of its own follows that row instead of its room's. No import leads to a room above.
 */
const MAY_IMPORT: Readonly<Record<string, string>> = {
  cli: "daemon apiserver server kubelet docker plan sources config manifest base citty valibot ws yaml",
  // Files of other programs to manifests: knows the shapes of the engine's containers, and no command.
  "cli/import":
    "base/api/docker-json.ts plan/environment.ts plan/security-profiles.ts base/api/annotations.ts base/api/quantity.ts base/text manifest/yaml valibot",
  "cli/bundle": "docker/docker-host.ts base/files valibot",
  // The one place that puts everything together.
  daemon:
    "apiserver cluster server page kubelet controllers docker plan sources config stats manifest base age-encryption consola/core valibot",
  "daemon/doctor": "daemon/install config/option-table.ts docker/docker-host.ts manifest plan sources stats base",
  "daemon/install": "base/files base/host base/text",
  // The listener and the streams into containers are those of the authenticated port; its objects are the kubelet's.
  apiserver: "server kubelet controllers sources plan config manifest base @valibot/to-json-schema valibot ws yaml",
  "apiserver/printers": "base/api base/model/memoized.ts",
  // A source of pods, and the node that runs them as an API server sees it.
  cluster: "controllers config/option-table.ts plan sources manifest base @kubernetes/client-node valibot",
  server: "config plan/status stats base ws",
  "server/certificates": "base/host @peculiar/x509 reflect-metadata",
  "server/page": "server page plan/status stats base",
  // Runs in browsers. Of the kubelet it knows types of objects alone. The JSX transform imports react without a tsconfig.
  page: "base/api preact react preact/hooks preact/jsx-dev-runtime preact/jsx-runtime uplot @xterm/xterm @xterm/addon-fit",
  kubelet: "config/option-table.ts plan stats manifest base",
  "kubelet/prober": "plan base",
  "kubelet/volumes": "plan stats/metrics base",
  "kubelet/cni": "plan base valibot",
  controllers: "plan base",
  docker: "plan config/option-table.ts manifest/yaml base valibot",
  // The Engine API. It knows no pods.
  "docker/engine":
    "base/concurrency base/files base/api/docker-json.ts base/host/http-fetch.ts base/host/process-sample.ts base/model/clock.ts base/model/container-access.ts base/model/engine-error.ts base/model/registry-auth.ts base/text valibot",
  plan: "config/option-table.ts base/api base/model base/text",
  // A status reports restarts and back-off, which plan/ decides.
  "plan/status": "plan base/api base/model base/text",
  sources: "manifest config/option-table.ts base",
  config: "manifest/yaml base",
  stats: "base",
  "stats/cgroups": "base/files base/host base/text",
  manifest: "base/api base/model base/text valibot",
  "manifest/yaml": "",
  "base/api": "base/text/duration.ts valibot",
  "base/text": "croner yaml",
  "base/files": "base/text",
  "base/logging": "base/model",
  "base/concurrency": "base/model",
  "base/model": "base/api",
  "base/host": "base/model base/files base/text valibot",
};

const mayImport = (row: string): readonly string[] => MAY_IMPORT[row]?.split(" ") ?? [];

/** Rooms, top to bottom. */
const ROOMS =
  "cli daemon apiserver cluster server page kubelet controllers docker plan sources config stats manifest base".split(
    " ",
  );

/** Folders of decisions: nothing in them touches files, sockets, processes or timers. */
const DECISIONS = "base/api base/model base/text manifest cli/import plan apiserver/printers controllers".split(" ");
const BUILTINS_WITHOUT_EFFECTS = "node:path node:path/posix node:crypto node:net node:buffer node:util".split(" ");

/** Files that read without one of the helpers that have a limit, and the reason. To shrink, never to grow. */
const READS_WITHOUT_LIMIT: Readonly<Record<string, string>> = {
  "cli/bundle/bundle-file.ts": "slices of checked size: a header, an index of at most 16 MiB",
  "cli/commands/bundle.ts": "our own program, streamed",
  "cli/commands/install.ts": "manifests of a verified bundle, of checked size",
  "page/": "runs in browsers and asks its own server",
  "base/files/held-directory.ts": "files of the kernel: /proc/self/fdinfo",
  "stats/cgroups/kernel-files.ts": "files of the kernel: cgroups and /proc",
  "server/certificates/make-certificates.ts": "the request of our own parent process",
  "server/page/bundle-page.ts": "runs when the executable is built",
  "server/cadvisor-routes.ts": "ServerRequest.text, limited by the server",
  "base/model/container-engine.ts": "a parameter: a text of kubelet/pod-files.ts, which limits it",
  "docker/security.ts": "a parameter: a text of kubelet/pod-files.ts, which limits it",
  "docker/docker-images.ts": "the archive is streamed to the engine",
  "cli/import/compose.ts": "a parameter of the command, which limits it",
  "cli/import/compose-files.ts": "a parameter of the command, which limits it",
  "cli/import/compose-volumes.ts": "a parameter of the command, which limits it",
};

interface Import {
  specifier: string;
  typeOnly: boolean;
}

interface SourceFile {
  /** Below src/, e.g. `plan/admission.ts`. */
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
  const allowed = mayImport(row);
  if (!isRelative(specifier)) return allowed.includes(specifier);
  const target = resolve(file, specifier);
  // Outside src/ is only package.json.
  return isBelow(target, row) || target.startsWith("..") || allowed.some((place) => isBelow(target, place));
}

/** Each rule with the things it allows, the reason, and the fix. CONTRIBUTING.md has a line for each. */
const RULES = {
  "every folder has a row": {
    allowed: "files in a room of MAY_IMPORT, and main.ts",
    why: "a folder without a row may import anything",
    fix: "move the file to a room, or add a row to MAY_IMPORT and a line to docs/architecture.md",
  },
  "no import leads to a room above": {
    allowed: "imports from the same room and from rooms further down in ROOMS",
    why: "what stands below can be read, tested and changed without what stands on it",
    fix: "move the type or function down to the room that both use (base/ at the latest), or pass the value as an argument",
  },
  "imports keep to the table": {
    allowed: "the room itself and what its row of MAY_IMPORT names",
    why: "the row is the list of everything one has to know to read the room",
    fix: "move the code to a room that may have the import, or add to the row and say why in the commit",
  },
  "folders of decisions touch nothing of the world": {
    allowed: `of the builtin modules ${BUILTINS_WITHOUT_EFFECTS.join(", ")}`,
    why: "decisions are tested by tables: no files, sockets, processes or timers",
    fix: "take what is read, or the time, as an argument; the caller in kubelet/, docker/ or daemon/ has the effect",
  },
  "imports form no cycle, not even of types": {
    allowed: "imports that never lead back to their file",
    why: "files of a cycle can only be understood together",
    fix: "merge the files, or move what both need to a third one below them",
  },
  "relative imports name a file that exists, with its extension": {
    allowed: "./name.ts, ../folder/name.ts",
    why: "Bun, tsc and this test resolve imports in the same way",
    fix: "write the name of the file with .ts or .tsx",
  },
  "files and responses are read by helpers with a limit": {
    allowed: "base/files/whole-file.ts and bounded-stream.ts, and the files of READS_WITHOUT_LIMIT",
    why: "a file or a response without end must not take the memory of the node",
    fix: "use one of the helpers; where the size is bounded by something else, add the file to READS_WITHOUT_LIMIT with the reason (and remove entries that are not needed any more)",
  },
  "requests go out through httpFetch": {
    allowed: "httpFetch of base/host/http-fetch.ts, and node:http; page/ runs in a browser",
    why: "Bun's fetch reads local files, too, and follows a redirect to one",
    fix: "call httpFetch, and check each redirect that is followed",
  },
  "nothing outside of docker/ imports docker/engine/": {
    allowed: "the files right in docker/: DockerEngine for the node, DockerHost for callers that own no containers",
    why: "another engine is another folder: what Docker sends and receives is known to docker/ alone",
    fix: "ask the engine by a member of ContainerEngine or DockerHost, or add one that speaks of pods, images or bytes",
  },
  "a test is named after its source file, with a topic where a file has several tests": {
    allowed: "test/ROOM/file.test.ts and test/ROOM/file-topic.test.ts for src/ROOM/file.ts; folders of WITHOUT_SOURCE",
    why: "the tests of a file are found without a search",
    fix: "rename the test, or move it to test/integration/ if it drives the program",
  },
  "every room has a README": {
    allowed: "src/ROOM/README.md of about ten lines",
    why: "it says what the room is, where it starts and what it may import",
    fix: "write it as the other rooms have it",
  },
  "docs/architecture.md names every room": {
    allowed: "rooms with a line in the picture",
    why: "the picture is the first thing a newcomer reads",
    fix: "add the line",
  },
  "a small file with one user is part of that user": {
    allowed: `files of more than ${FEW_LINES} lines, with several users or with a user in another room, and those of SMALL_FILES`,
    why: "each file on the way of a call has to be opened by the reader",
    fix: "move its code into the file that imports it; where each member of a family has a file, add it to SMALL_FILES with the reason (and remove entries that are not needed any more)",
  },
  "there are no default exports": {
    allowed: "named exports",
    why: "a thing has one name everywhere",
    fix: "export it by name",
  },
  "file names are kebab-case and name a subject": {
    allowed: "kebab-case; not utils, helpers, common, misc, index",
    why: "a function lives with the noun it serves",
    fix: "name the file after its main export",
  },
} as const;

/** A test that fails with the findings, what is allowed, why, and the fix. */
function rule(name: keyof typeof RULES, find: () => readonly string[]): void {
  test(name, () => {
    const wrong = find();
    if (wrong.length === 0) return;
    const { allowed, why, fix } = RULES[name];
    throw new Error(`${name}:\n\n${wrong.join("\n")}\n\nAllowed: ${allowed}.\nWhy: ${why}.\nFix: ${fix}.`);
  });
}

const showImport = (file: SourceFile, specifier: string) =>
  `src/${file.path} imports ${isRelative(specifier) ? `src/${resolve(file, specifier)}` : specifier}`;

describe("architecture", () => {
  rule("every folder has a row", () =>
    files.filter(({ path, folder }) => folder !== "" && rowOf(path) === "").map(({ path }) => path),
  );

  rule("no import leads to a room above", () =>
    files.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => isRelative(specifier) && !resolve(file, specifier).startsWith(".."))
        .filter(
          ({ specifier }) => ROOMS.indexOf(resolve(file, specifier).split("/")[0] ?? "") < ROOMS.indexOf(file.folder),
        )
        .map(({ specifier }) => showImport(file, specifier)),
    ),
  );

  rule("imports keep to the table", () =>
    files.flatMap((file) =>
      file.imports
        .filter((found) => !isAllowed(file, found))
        .map(({ specifier }) => {
          const row = rowOf(file.path);
          return `${showImport(file, specifier)}; ${row}/ may import ${mayImport(row).join(", ") || "nothing"}`;
        }),
    ),
  );

  rule("folders of decisions touch nothing of the world", () =>
    files
      .filter((file) => DECISIONS.some((folder) => isBelow(file.path, folder)))
      .flatMap((file) =>
        file.imports
          .filter(({ specifier }) => isBuiltin(specifier) && !BUILTINS_WITHOUT_EFFECTS.includes(specifier))
          .map(({ specifier }) => showImport(file, specifier)),
      ),
  );

  rule("imports form no cycle, not even of types", () => {
    const graph = new Map(
      files.map((file) => [
        file.path,
        file.imports.filter((found) => isRelative(found.specifier)).map((found) => resolve(file, found.specifier)),
      ]),
    );
    return findCycle(graph);
  });

  rule("relative imports name a file that exists, with its extension", () => {
    const known = new Set(files.map((file) => file.path));
    return files.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => isRelative(specifier) && !/\.(json|html|css|txt)$/.test(specifier))
        .filter(({ specifier }) => !known.has(resolve(file, specifier)))
        .map(({ specifier }) => showImport(file, specifier)),
    );
  });

  rule("files and responses are read by helpers with a limit", () => {
    const unbounded = /(?<!#)\b(?:readFileSync|readFile|Bun\.file)\(|\.(?:text|json|bytes|arrayBuffer|blob)\(\)/;
    const found = files.filter(({ text }) => unbounded.test(text)).map(({ path }) => path);
    const isAllowed = (path: string) => path in READS_WITHOUT_LIMIT || path.startsWith("page/");
    const unused = Object.keys(READS_WITHOUT_LIMIT).filter((entry) => !found.some((path) => path.startsWith(entry)));
    return [
      ...found.filter((path) => !isAllowed(path)).map((path) => `src/${path} reads without a limit`),
      ...unused.map((entry) => `READS_WITHOUT_LIMIT["${entry}"] is not needed any more`),
    ];
  });

  rule("requests go out through httpFetch", () =>
    files
      .filter(({ path, text }) => /(?<![.#\w])fetch\((?!request)/.test(text) && !path.startsWith("page/"))
      .filter(({ path }) => path !== "base/host/http-fetch.ts")
      .map(({ path }) => `src/${path} calls fetch`),
  );

  rule("nothing outside of docker/ imports docker/engine/", () =>
    files
      .filter(({ folder }) => folder !== "docker")
      .flatMap((file) =>
        file.imports
          .filter(({ specifier }) => isRelative(specifier) && isBelow(resolve(file, specifier), "docker/engine"))
          .map(({ specifier }) => showImport(file, specifier)),
      ),
  );

  rule("a test is named after its source file, with a topic where a file has several tests", () => {
    const sources = files.map(({ path }) => path.replace(/\.tsx?$/, ""));
    const tests = readdirSync(TEST, { recursive: true, encoding: "utf8" })
      .filter((path) => /\/[^/]+\.test\.tsx?$/.test(path))
      .filter((path) => !WITHOUT_SOURCE.includes(path.split("/")[0] ?? ""));
    const isMirror = (path: string) =>
      sources.some((source) => path.startsWith(`${source}.test.`) || path.startsWith(`${source}-`));
    return tests.filter((path) => !isMirror(path)).sort();
  });

  rule("every room has a README", () =>
    ROOMS.filter((room) => !existsSync(join(SRC, room, "README.md"))).map((room) => `src/${room}`),
  );

  rule("docs/architecture.md names every room", () => {
    const doc = readFileSync(join(import.meta.dir, "../docs/architecture.md"), "utf8");
    const folders = new Set(files.map(({ folder }) => folder).filter((folder) => folder !== ""));
    return [...folders].filter((folder) => !doc.includes(`${folder}/`));
  });

  rule("a small file with one user is part of that user", () => {
    const users = Map.groupBy(
      files.flatMap((file) => file.imports.map((found) => ({ user: file, target: resolve(file, found.specifier) }))),
      ({ target }) => target,
    );
    const small = files.flatMap(({ path, folder, text }) => {
      const lines = text.split("\n").length - 1;
      // A file for each kind of the API, and for each command.
      if (path.startsWith("apiserver/kinds/") || path.startsWith("cli/commands/")) return [];
      const [only, ...others] = new Set((users.get(path) ?? []).map(({ user }) => user));

      return lines <= FEW_LINES && others.length === 0 && only?.folder === folder ? [{ path, lines, only }] : [];
    });
    const unused = Object.keys(SMALL_FILES).filter((entry) => !small.some(({ path }) => path === entry));
    return [
      ...small
        .filter(({ path }) => !(path in SMALL_FILES))
        .map(({ path, lines, only }) => `src/${path} has ${lines} lines; only src/${only.path} imports it`),
      ...unused.map((entry) => `SMALL_FILES["${entry}"] is not needed any more`),
    ];
  });

  rule("there are no default exports", () =>
    files.filter((file) => /^export default\b/m.test(file.text)).map((file) => file.path),
  );

  rule("file names are kebab-case and name a subject", () =>
    files
      .filter(({ path }) => {
        const name =
          path
            .split("/")
            .at(-1)
            ?.replace(/\.tsx?$/, "") ?? "";
        return !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || /^(utils?|helpers?|commons?|misc|index)$/.test(name);
      })
      .map((file) => file.path),
  );

  test("CONTRIBUTING.md has a line for each rule", () => {
    const text = readFileSync(join(import.meta.dir, "../CONTRIBUTING.md"), "utf8").replace(/\s+/g, " ");
    expect(Object.keys(RULES).filter((name) => !text.toLowerCase().includes(name.toLowerCase()))).toEqual([]);
  });
});

/** One cycle, file by file, or nothing. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    for (const next of graph.get(path) ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle.length > 0) return cycle;
    }
    done.add(path);
    return [];
  };
  for (const path of graph.keys()) {
    const cycle = visit(path, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
