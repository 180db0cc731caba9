import type {
  ContainerAccess,
  LogSelection,
  OutputChunk,
  ProcessSession,
  StreamSelection,
  TerminalSize,
} from "../../src/base/model/container-access.ts";

/** Containers whose log is what was put there, with a few commands; remembers what it was asked. */
export class FakeContainers implements ContainerAccess {
  readonly asked: string[] = [];
  selection: LogSelection | undefined;
  log = ["one\n", "two\n"];
  /** Output of the next held process. */
  output: OutputChunk[] = [];
  exitCode: number | undefined = 0;
  /** Thrown by the next call. */
  failure: Error | undefined;
  /** The last held process. */
  held: FakeProcess | undefined;

  async logs(id: string, selection: LogSelection): Promise<AsyncIterable<OutputChunk>> {
    this.#note(`logs ${id}`);
    this.selection = selection;
    const { tailLines = this.log.length, limitBytes } = selection;
    const lines = this.log.slice(Math.max(0, this.log.length - tailLines));
    const wanted = limitBytes === undefined ? lines : [lines.join("").slice(0, limitBytes)];
    return (async function* () {
      for (const piece of wanted) yield { stream: "stdout" as const, data: Buffer.from(piece) };
    })();
  }

  async run(id: string, argv: readonly string[]) {
    this.#note(`run ${id} ${argv.join("|")}`);
    return { stderr: "", timedOut: false, ...(resultOf(argv) ?? { exitCode: 126, output: "not found" }) };
  }

  async exec(id: string, argv: readonly string[], streams: StreamSelection): Promise<ProcessSession> {
    this.#note(`exec ${id} ${argv.join("|")} ${namesOf(streams)}`);
    const result = resultOf(argv);
    if (!result) return this.#hold();
    return new FakeProcess([{ stream: "stdout", data: Buffer.from(result.output) }], result.exitCode);
  }

  async attach(id: string, streams: StreamSelection): Promise<ProcessSession> {
    this.#note(`attach ${id} ${namesOf(streams)}`);
    return this.#hold();
  }

  #hold(): FakeProcess {
    this.held = new FakeProcess(this.output, this.exitCode);
    return this.held;
  }

  #note(what: string): void {
    this.asked.push(what);
    if (this.failure) throw this.failure;
  }
}

/** Commands that it has. */
const resultOf = ([program, ...args]: readonly string[]): { exitCode: number; output: string } | undefined =>
  ({
    id: { exitCode: 0, output: "uid=0 gid=0 groups=0\n" },
    echo: { exitCode: 0, output: `${args.join(" ")}\n` },
    false: { exitCode: 1, output: "" },
  })[program ?? ""];

const namesOf = (streams: StreamSelection) =>
  Object.entries(streams)
    .filter(([, isOn]) => isOn)
    .map(([name]) => name)
    .join("+");

/** Writes what it was given; with nothing to write it runs until its input ends or it is closed. */
export class FakeProcess implements ProcessSession {
  readonly output: AsyncIterable<OutputChunk>;
  readonly written: string[] = [];
  readonly sizes: TerminalSize[] = [];
  closed = 0;
  readonly #ended = Promise.withResolvers<void>();
  readonly #exitCode: number | undefined;

  constructor(output: OutputChunk[], exitCode: number | undefined) {
    this.#exitCode = exitCode;
    const ended = this.#ended.promise;
    this.output = (async function* () {
      yield* output;
      if (output.length === 0) await ended;
    })();
  }

  write = async (data: Uint8Array) => void this.written.push(Buffer.from(data).toString());
  endInput = () => {
    this.written.push("<end>");
    this.#ended.resolve();
  };
  resize = async (size: TerminalSize) => void this.sizes.push(size);
  exitCode = async () => this.#exitCode;
  close = async () => {
    this.closed += 1;
    this.#ended.resolve();
  };
}
