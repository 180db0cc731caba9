import { afterAll, expect, test } from "bun:test";
import { EngineModel } from "../simulation/engine-model.ts";
import { SeededRandom } from "../simulation/seeded-random.ts";
import { VirtualTime } from "../simulation/virtual-time.ts";
import { describeWithEngine } from "../support/engine.ts";
import { engineSocketPath } from "../support/test-node.ts";
import { until } from "../support/until.ts";

interface Call {
  method: string;
  path: string;
  body?: object;
}

interface Outcome {
  status: number;
  json: Record<string, unknown> | undefined;
}

interface Engine {
  image: string;
  program: (word: keyof typeof PROGRAMS) => readonly string[];
  call: (call: Call) => Promise<Outcome>;
  /** The program `run` of a container hears signals. */
  untilListening: (id: string) => Promise<unknown>;
  /** Time passes until a container has ended. */
  untilEnded: (id: string) => Promise<void>;
  /** `name action` of all containers so far. */
  events: () => Promise<string[]>;
}

/** The programs of the model as shell commands. */
const PROGRAMS = {
  run: ["sh", "-c", "trap 'exit 143' TERM; while :; do sleep 0.05; done"],
  deaf: ["sleep", "1000"],
  "exit 0 3": ["sh", "-c", "exit 3"],
} as const;

const RUN = `model-${process.pid}-${Date.now()}`;
const LABELS = { "kubelet-ts-test": RUN };
const EVENTS = new URLSearchParams({
  filters: JSON.stringify({ type: ["container"], label: [`kubelet-ts-test=${RUN}`] }),
});

class RealEngine implements Engine {
  readonly image = "busybox:test";
  /** Opened before the calls: the engine keeps its last 256 events alone, and other tests cause some too. */
  readonly #stream = fetch(`http://docker/v1.41/events?${EVENTS}`, { unix: engineSocketPath() });

  program = (word: keyof typeof PROGRAMS) => PROGRAMS[word];

  async call({ method, path, body }: Call): Promise<Outcome> {
    await this.#stream;
    const response = await fetch(`http://docker/v1.41${path}`, {
      unix: engineSocketPath(),
      method,
      ...(body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
    });
    const text = await response.text();
    return { status: response.status, json: text.startsWith("{") ? JSON.parse(text) : undefined };
  }

  /** A shell that has not set its trap yet would be killed: it has, once it sleeps in its loop. */
  untilListening = (id: string) =>
    until("the trap of a program", async () => {
      const { json } = await this.call({ method: "GET", path: `/containers/${id}/top` });
      return ((json?.Processes ?? []) as unknown[]).length > 1;
    });

  async untilEnded(id: string): Promise<void> {
    await this.call({ method: "POST", path: `/containers/${id}/wait?condition=not-running` });
  }

  async events(): Promise<string[]> {
    let text = "";
    for await (const chunk of (await this.#stream).body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      // The last call removes this container.
      if (toActions(text.slice(0, text.lastIndexOf("\n") + 1)).at(-1) === "pause destroy") break;
    }
    return toActions(text);
  }

  async removeAll(): Promise<void> {
    for (const name of Object.values(NAMES)) await this.call({ method: "DELETE", path: `/containers/${name}?force=1` });
  }
}

class ModelEngine implements Engine {
  readonly image = "app1:1";
  readonly #time = new VirtualTime(1, Date.now());
  readonly #engine = new EngineModel(this.#time, new SeededRandom(1));

  constructor() {
    this.#engine.images.set("app1:1", { id: "sha256:1", tags: ["app1:1"] });
  }

  program = (word: keyof typeof PROGRAMS) => word.split(" ");

  untilListening = async () => {};

  async call({ method, path, body }: Call): Promise<Outcome> {
    const { pathname, searchParams } = new URL(path, "http://docker");
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const request = { method, path: pathname, query: searchParams, body: body && JSON.stringify(body) };
    this.#engine.handle(request, ({ status, json, text }) => {
      const plain = json ?? (text?.startsWith("{") ? JSON.parse(text) : undefined);
      resolve({ status, json: plain && JSON.parse(JSON.stringify(plain)) });
    });
    this.#time.runTo(this.#time.nowMs + 10_000);
    return promise;
  }

  async untilEnded(): Promise<void> {
    this.#time.runTo(this.#time.nowMs + 10_000);
  }

  async events(): Promise<string[]> {
    const { promise, resolve } = Promise.withResolvers<string[]>();
    const query = new URLSearchParams(EVENTS);
    query.set("since", "0");
    this.#engine.handle({ method: "GET", path: "/events", query, body: undefined }, async ({ stream }) => {
      stream?.end();
      let text = "";
      for await (const chunk of stream ?? []) text += new TextDecoder().decode(chunk);
      resolve(toActions(text));
    });
    return promise;
  }
}

const NAMES = {
  pause: `${RUN}-pause`,
  app: `${RUN}-app`,
  late: `${RUN}-late`,
  deaf: `${RUN}-deaf`,
  short: `${RUN}-short`,
};

function toActions(text: string): string[] {
  return (
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { Action: string; Actor: { Attributes: Record<string, string> } })
      .map(
        ({ Action, Actor: { Attributes } }) =>
          `${Attributes.name?.slice(RUN.length + 1)} ${Action}${Attributes.exitCode ? ` ${Attributes.exitCode}` : ""}`,
      )
      // The kubelet does not listen to these.
      .filter((action) => !/ (exec_|kill|stop|attach|top)/.test(action))
  );
}

/** The kubelet's calls in good and bad orders. @returns the engine's status for each, then its events */
async function runCalls(engine: Engine): Promise<string[]> {
  const outcomes: string[] = [];
  const call = async (what: string, call: Call) => {
    const { status } = await engine.call(call);
    outcomes.push(`${what}: ${status}`);
  };
  const create = (name: string, word: keyof typeof PROGRAMS, HostConfig = {}, Image = engine.image) =>
    call(`create ${name.slice(RUN.length + 1)}`, {
      method: "POST",
      path: `/containers/create?name=${name}`,
      body: { Image, Cmd: engine.program(word), Labels: LABELS, HostConfig },
    });
  const post = (verb: string, name: string, query = "") =>
    call(`${verb} ${name.slice(RUN.length + 1)}`, { method: "POST", path: `/containers/${name}/${verb}${query}` });
  const remove = (name: string, query = "") =>
    call(`remove ${name.slice(RUN.length + 1)}${query}`, { method: "DELETE", path: `/containers/${name}${query}` });
  const state = async (name: string) => {
    const { status, json } = await engine.call({ method: "GET", path: `/containers/${name}/json` });
    const { Status, ExitCode, Running, Error: error, StartedAt } = (json?.State ?? {}) as Record<string, unknown>;
    const started = String(StartedAt).startsWith("0001") ? "never started" : "started";
    outcomes.push(
      `state of ${name.slice(RUN.length + 1)}: ${status} ${Status} ${Running} ${ExitCode} ${started} ${error ? "with an error" : ""}`,
    );
  };
  const exec = (name: string) =>
    call(`exec in ${name.slice(RUN.length + 1)}`, {
      method: "POST",
      path: `/containers/${name}/exec`,
      body: { Cmd: ["true"], AttachStdout: true },
    });

  const { pause, app, late, deaf, short } = NAMES;
  await create(pause, "run", {}, "no-such-image:1");
  await create(pause, "run");
  await create(pause, "run");
  await state(pause);
  await exec(pause);
  await post("start", pause);
  await post("start", pause);
  await state(pause);
  await remove(pause);
  await exec(pause);
  await create(app, "run", { NetworkMode: `container:${pause}` });
  await create(late, "run", { NetworkMode: `container:${pause}` });
  await post("start", app);
  await engine.untilListening(app);
  await post("stop", app, "?t=5");
  await state(app);
  await post("stop", app, "?t=5");
  await post("kill", app);
  await post("stop", pause, "?t=5");
  await post("start", late);
  await state(late);
  await post("start", app);
  await state(app);
  await remove(late);
  await remove(late);
  await state(late);
  await post("start", late);
  await create(deaf, "deaf");
  await post("start", deaf);
  await post("stop", deaf, "?t=1");
  await state(deaf);
  await post("start", deaf);
  await remove(deaf, "?force=1");
  await create(short, "exit 0 3");
  await post("start", short);
  await engine.untilEnded(short);
  await state(short);
  await remove(short);
  await remove(app);
  await remove(pause);
  return [...outcomes, ...(await engine.events())];
}

describeWithEngine("the engine model of the simulation", () => {
  const real = new RealEngine();
  afterAll(() => real.removeAll());

  test("responds as Docker does, call by call and event by event", async () => {
    const [docker, model] = [await runCalls(real), await runCalls(new ModelEngine())];
    expect(model).toEqual(docker);
  });
});
