import * as crypto from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import * as os from "node:os";
import { join } from "node:path";
import { plugin } from "bun";
import type { Collections } from "./collections.ts";
import type { FirewallModel } from "./firewall-model.ts";
import type { PodNetwork } from "./pod-network.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import type { VirtualTime } from "./virtual-time.ts";

const HERE = import.meta.dir;
const SRC = join(HERE, "../../src/");
/** Sources of another version, to which machines go back and forth: a directory with its src and node_modules. */
export const EARLIER: string | undefined = process.env.KUBELET_TS_SIMULATE_EARLIER;
const ROOTS = [SRC, ...(EARLIER === undefined ? [] : [join(EARLIER, "src/")])];

/** The machine that the program sees. */
interface Machine {
  disk: SimulatedDisk;
  time: VirtualTime;
  firewall: FirewallModel;
  pods: PodNetwork;
  /** Routes of the Unix sockets that the program serves, by path. */
  sockets: Map<string, unknown>;
  hostName: string;
  /** On some machines. */
  collections: Collections | undefined;
}

const INTERFACES = {
  eth0: [{ address: "10.0.0.5", family: "IPv4", internal: false, netmask: "255.255.255.0", mac: "", cidr: null }],
};

/** The machine that lives now: the program is loaded once in a process, for all that live there. */
let machine: Machine;

/** The functions of an object, each as the machine that lives now has it. */
function forwarded<T extends object>(pick: (machine: Machine) => T): T {
  const functionOf = (name: string) => {
    const run = (...values: unknown[]) =>
      (pick(machine) as Record<string, (...values: unknown[]) => unknown>)[name]?.(...values);
    return [name, run] as const;
  };
  const entries = Object.entries(pick(machine)).map(([name, value]) =>
    typeof value === "function" ? functionOf(name) : [name, value],
  );
  return Object.fromEntries(entries) as T;
}

/** Modules of the runtime that the program imports, as the machine has them. Files are read and written at once. */
const toModules = (): Readonly<Record<string, Record<string, unknown>>> => {
  const files = forwarded(({ disk }) => disk.fs.promises);
  return {
    fs: { ...forwarded(({ disk }) => disk.fs), promises: files },
    "fs/promises": files,
    os: { ...os, hostname: () => machine.hostName, networkInterfaces: () => INTERFACES },
    // Chance comes from the seed.
    crypto: {
      ...crypto,
      randomUUID: () => machine.time.programRandom.uuid(),
      randomBytes: (count: number) => Buffer.from(machine.time.programRandom.hex(count * 2), "hex"),
    },
    // Turns of the loop.
    "timers/promises": {
      setImmediate: () => new Promise<void>((resolve) => void machine.time.afterForProcess(0, resolve)),
    },
    // Only the prober's, which connects to pods.
    net: { default: forwarded(({ pods }) => pods.net) },
    http: { default: forwarded(({ pods }) => pods.http) },
    // System calls that the runtime has no module for.
    kernel: {
      tryFlock: async (descriptor: number) => machine.disk.lock(descriptor),
      listen: (path: string, route: unknown) => machine.sockets.set(path, route),
      unlisten: (path: string) => machine.sockets.delete(path),
      look: (...values: Parameters<VirtualTime["look"]>) => machine.time.look(...values),
      untilLook,
      heldMs: (owner: object) => machine.time.heldMs(owner),
      rememberParsed,
      readRuleGeneration: async () => machine.firewall.generation,
    },
  };
};

/** Files of src that call the kernel by other ways. */
const REPLACED_FILES: Readonly<Record<string, string>> = {
  "base/host/flock.ts": 'export { tryFlock } from "simulated:kernel";\n',
  "server/listener.ts": `
    import { listen, unlisten } from "simulated:kernel";
    export class Listener {
      #options;
      constructor(options) { this.#options = options; }
      get port() { return undefined; }
      get socketPath() { return this.#options.address.socketPath; }
      start() { if (this.socketPath) listen(this.socketPath, this.#options.route); }
      async stop() { unlisten(this.socketPath); }
    }
  `,
  "base/host/rule-generation.ts": 'export { readRuleGeneration } from "simulated:kernel";\n',
};

/**
 * Where the program looks again and again whether something has changed: in a still world it need not. And where it parses what it
 * parsed before.
 */
const LOOKS: Readonly<Record<string, readonly (readonly [before: string, after: string])[]>> = {
  "sources/path-watch.ts": [["clock.schedule(LOOK_AGAIN_MS,", "look(this, LOOK_AGAIN_MS,"]],
  "sources/file-source.ts": [
    [
      "this.#deps.clock.schedule(delayMs, () =>",
      "look(delayMs < this.#deps.checkFrequencyMs ? undefined : this, delayMs, () =>",
    ],
  ],
  "sources/url-source.ts": [
    [
      "this.#deps.clock.schedule(this.#delayMs(), () => void",
      "look(this.#failuresInARow > 0 ? undefined : this, this.#delayMs(), () => void",
    ],
  ],
  "controllers/workload-manager.ts": [["clock.schedule(CLOCK_CHECK_MS,", "look(this, CLOCK_CHECK_MS,"]],
  "kubelet/runtime-watcher.ts": [
    [
      "clock.schedule(nextInMs, () => this.#periodicRelist())",
      'look(nextInMs < relistPeriodMs ? undefined : this, nextInMs, () => this.#periodicRelist(), "engine")',
    ],
    [
      "clock.monotonicMs() - this.#lastListAtMs;\n    if (silentMs",
      "clock.monotonicMs() - this.#lastListAtMs - heldMs(this);\n    if (silentMs",
    ],
  ],
  "kubelet/images/image-gc-manager.ts": [["this.#deps.clock.sleep(waitMs, signal)", "untilLook(this, waitMs, signal)"]],
  "docker/engine/docker-connection.ts": [
    ["export function parseAs<", "export const parseAs: typeof parse = rememberParsed(parse);\n\nfunction parse<"],
  ],
  // Servers let watches last for as long as the client asks.
  "cluster/client/reflector.ts": [["const MIN_WATCH_SECONDS = 300;", "const MIN_WATCH_SECONDS = 1500;"]],
  // A refused pod is refused again.
  "cluster/pods/mirror-manager.ts": [["longest: 60_000", "longest: 1_800_000"]],
  "kubelet/kernel-rules.ts": [["this.#deps.clock.schedule(CHECK_MS,", "look(this, CHECK_MS,"]],
  "kubelet/prober/probe-manager.ts": [
    [
      "clock.schedule(dueMs - nowMs,",
      "look(isEarly || dueMs - nowMs < 60_000 ? undefined : this.#instance, dueMs - nowMs,",
    ],
  ],
};

function untilLook(owner: object, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = machine.time.look(owner, ms, () => {
    signal.removeEventListener("abort", onAbort);
    resolve();
  });
  const onAbort = () => {
    cancel();
    resolve();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return promise;
}

/** A shorter response is checked again each time. Unit: characters. */
const SHORT_RESPONSE = 200;
const RESPONSES_REMEMBERED = 1024;
/** Between two containers of a list, which seldom change all at once. */
const BETWEEN_ITEMS = '},{"Id":';

type Parse = (schema: unknown, text: string, operation: string) => unknown;

/** Responses about what rests are equal for hours: their text is parsed and checked once. Who writes to the result gets a TypeError. */
function rememberParsed(parse: Parse): Parse {
  const known = new Map<string, { operation: string; result: unknown }>();
  const parseOne: Parse = (schema, text, operation) => {
    const before = known.get(text);
    if (before?.operation === operation) return before.result;
    const result = parse(schema, text, operation);
    if (text.length < SHORT_RESPONSE) return result;
    if (known.size >= RESPONSES_REMEMBERED) known.clear();
    known.set(text, { operation, result: freeze(result) });
    return result;
  };
  return (schema, text, operation) => {
    const { item } = schema as { item?: unknown };
    if (!item || !text.startsWith('[{"Id":') || !text.endsWith("}]")) return parseOne(schema, text, operation);
    const [first = "", ...more] = text.slice(1, -2).split(BETWEEN_ITEMS);
    return [first, ...more.map((part) => `{"Id":${part}`)].map((part) => parseOne(item, `${part}}`, operation));
  };
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  Object.values(value).forEach(freeze);
  return Object.freeze(value);
}

/** A planted mistake: a patch of one place in one file of src. */
export interface Mutation {
  /** `src/plan/stop-pod.ts`. */
  file: string;
  before: string;
  after: string;
  /** The same without the lines around it. */
  changed: { before: string; after: string };
}

const MUTANTS = join(HERE, "mutants");

/** Names of all planted mistakes. */
export const listMutants = (): string[] =>
  readdirSync(MUTANTS)
    .map((name) => name.replace(/\.patch$/, ""))
    .sort();

/** @throws Error when the patch has several hunks */
export function readMutant(name: string): Mutation {
  const patch = readFileSync(join(MUTANTS, `${name}.patch`), "utf8");
  const [head = "", hunk = "", ...more] = patch.split(/^@@.*@@.*\n/m);
  const file = /^\+\+\+ b\/(.+)$/m.exec(head)?.[1];
  if (file === undefined || more.length > 0) throw new Error(`${name}.patch is not a patch of one place`);
  const lines = hunk.split("\n").filter((line) => line !== "");
  const side = (dropped: string, from: readonly string[]) =>
    from
      .filter((line) => !line.startsWith(dropped))
      .map((line) => line.slice(1))
      .join("\n");
  const isChange = (line: string) => !line.startsWith(" ");
  const inner = lines.slice(lines.findIndex(isChange), lines.findLastIndex(isChange) + 1);
  const changed = { before: side("+", inner), after: side("-", inner) };
  return { file, before: side("+", lines), after: side("-", lines), changed };
}

/** The lines around the place matter only where those of the place are there twice. @throws Error when it is not there */
export function mutate(text: string, { file, before, after, changed }: Mutation): string {
  const isOnce = (part: string) => part !== "" && text.split(part).length === 2;
  if (isOnce(changed.before)) return text.replace(changed.before, () => changed.after);
  if (isOnce(before)) return text.replace(before, () => after);
  throw new Error(`the place of the mistake is not in ${file}`);
}

/**
 * The environment of a process that lives a machine. Its work is spread so evenly that the last tier of the compiler, and collecting garbage in
 * other threads, cost more than they save.
 */
export const processEnvironment = (): Record<string, string | undefined> => ({
  ...process.env,
  BUN_JSC_useFTLJIT: "0",
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_JSC_useConcurrentGC: "0",
});

/**
 * Lets every file of src use this machine instead of the runtime's modules. Before the first import of src.
 * @throws Error for the second machine of a process with {@link Machine.collections}, which are built into the program
 */
export function replaceModules(living: Machine, mutant?: string): void {
  const isFirst = machine === undefined;
  if (!isFirst && (living.collections ?? machine.collections))
    throw new Error("this machine needs a process of its own");
  machine = living;
  if (!isFirst) return;
  const mutation = mutant === undefined ? undefined : readMutant(mutant);
  Object.assign(globalThis, machine.collections?.globals);
  plugin({
    name: "simulated machine",
    setup(build) {
      for (const [name, exports] of Object.entries(toModules())) {
        build.module(`simulated:${name}`, () => ({ exports, loader: "object" }));
      }
      build.onLoad({ filter: new RegExp(`^(${ROOTS.join("|")}).*\\.tsx?$`) }, ({ path }) => {
        const root = ROOTS.find((one) => path.startsWith(one)) ?? SRC;
        const file = path.slice(root.length);
        const replaced = REPLACED_FILES[file];
        let contents = replaced ?? readFileSync(path, "utf8");
        const mistaken = mutation && path === join(SRC, "..", mutation.file) ? mutation : undefined;
        if (mistaken) contents = mutate(contents, mistaken);
        contents = contents.replaceAll(
          /from "node:(fs|fs\/promises|os|crypto|timers\/promises)"/g,
          'from "simulated:$1"',
        );
        if (file.startsWith("kubelet/prober/"))
          contents = contents.replace(/from "node:(net|http)"/g, 'from "simulated:$1"');
        const looks = LOOKS[file];
        for (const [before, after] of looks ?? []) {
          if (!contents.includes(before) && !mistaken && root === SRC)
            throw new Error(`${path} has no longer: ${before}`);
          contents = contents.replace(before, () => after);
        }
        if (looks) contents = `import { heldMs, look, rememberParsed, untilLook } from "simulated:kernel"; ${contents}`;
        contents = machine.collections?.rewrite(contents, file) ?? contents;
        // The page is compiled into the program by a macro, which no one opens here.
        contents = contents.replace(/^import \{ bundlePage \}.*$/m, "const bundlePage = () => '{}';");
        return { contents, loader: path.endsWith("x") ? "tsx" : "ts" };
      });
    },
  });
}
