import { describe, expect, test } from "bun:test";
import { DockerClient } from "../../../src/docker/engine/docker-client.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError } from "../../../src/docker/engine/docker-error.ts";
import { FakeDaemon, type FakeDaemonOptions, RawDaemon } from "../../support/fake-daemon.ts";

const clientAt = (path: string) => new DockerClient({ kind: "unix", path });

class Served extends FakeDaemon {
  readonly client = clientAt(this.socketPath);
}

const serve = (routes: FakeDaemonOptions["routes"] = {}, more: FakeDaemonOptions = {}) =>
  new Served({ ...more, routes });

const endless = () => new Promise<never>(() => {});
const encode = (text: string) => new TextEncoder().encode(text);
/** A response that begins with a text and never ends. */
const unended = (text = "", cancel = () => {}) =>
  new Response(new ReadableStream({ start: (out) => out.enqueue(encode(text)), cancel }));

const listen = async (...given: Parameters<typeof RawDaemon.listen>) => {
  const raw = await RawDaemon.listen(...given);
  return Object.assign(raw, { client: clientAt(raw.socketPath) });
};

/** An engine that ends the connection after one line of a stream. */
const cutOff = (line: string) =>
  listen((socket) => {
    socket.on("data", (data) => {
      const path = data.toString().split(" ")[1] ?? "";
      const answer = (text: string) =>
        socket.write(`HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      if (path === "/_ping") return answer("OK");
      if (path === "/version") return answer('{"Version":"1","ApiVersion":"1.41"}');
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${line.length.toString(16)}\r\n${line}\r\n`);
      // fetch drops bytes that it has not yet handed out when the connection breaks: `since` brings such events again.
      setTimeout(() => socket.destroy(), 20);
    });
  });

/** The error that a call failed with. */
async function failure(call: Promise<unknown>): Promise<DockerUnreachableError> {
  try {
    await call;
  } catch (error) {
    expect(error).toBeInstanceOf(DockerUnreachableError);
    return error as DockerUnreachableError;
  }
  throw new Error("the call succeeded");
}

function frame(stream: number, payload: string): Uint8Array {
  const data = Buffer.from(payload);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data]);
}

describe("negotiation", () => {
  test.each([
    { engine: "1.41", least: "1.12", want: "1.41" },
    { engine: "1.52", least: "1.44", want: "1.52" },
    { engine: "1.56", least: "1.44", want: "1.52" },
  ])("an engine with $least to $engine is spoken to in $want", async ({ engine, least, want }) => {
    using daemon = serve({ "GET /networks": () => Response.json([]) }, { apiVersion: engine, minApiVersion: least });
    const { client } = daemon;
    await client.listNetworks();
    expect(client.apiVersion).toBe(want);
    expect(daemon.requests.map(({ version, path }) => [version, path])).toEqual([
      [undefined, "/_ping"],
      [undefined, "/version"],
      [want, "/networks"],
    ]);
  });

  const says = (body: string, init?: ResponseInit): FakeDaemonOptions => {
    const answer = () => new Response(body, init);
    return { routes: { "GET /_ping": answer, "GET /version": answer } };
  };
  const notDocker = "is no Docker engine";
  test.each<[when: string, kind: DockerUnreachableError["kind"], says: string, FakeDaemonOptions]>([
    ["too old", "too-old", "Upgrade Docker", { apiVersion: "1.24" }],
    ["too new", "too-new", "Upgrade kubelet-ts", { apiVersion: "1.70", minApiVersion: "1.60" }],
    ["a web server", "not-docker", notDocker, says("<html>", { status: 404 })],
    ["an answer without end", "not-docker", notDocker, says("x".repeat(1_000_000))],
    ["OK to everything", "not-docker", notDocker, says("OK")],
  ])("%s: %s", async (_when, kind, says, options) => {
    using daemon = new Served(options);
    const error = await failure(daemon.client.connect());
    expect(error.kind).toBe(kind);
    expect(error.message).toContain(says);
    expect(error.message).toContain(daemon.socketPath);
  });

  test("calls at once negotiate once", async () => {
    using daemon = serve({ "GET /networks": () => Response.json([]) });
    const { client } = daemon;
    await Promise.all([client.listNetworks(), client.listNetworks(), client.listNetworks()]);
    expect(daemon.requests.filter(({ path }) => path === "/_ping")).toHaveLength(1);
  });

  test("a failed negotiation is tried again by the next call", async () => {
    let up = false;
    using daemon = serve({
      "GET /_ping": () => new Response(up ? "OK" : "starting", { status: up ? 200 : 500 }),
      "GET /networks": () => Response.json([]),
    });
    const { client } = daemon;
    await expect(client.listNetworks()).rejects.toMatchObject({ status: 500 });
    up = true;
    expect(await client.listNetworks()).toEqual([]);
  });
});

describe("no engine", () => {
  test.each<[string, ConstructorParameters<typeof DockerClient>[0], object]>([
    [
      "no socket, and what to do",
      { kind: "unix", path: "/nonexistent/docker.sock" },
      { kind: "no-socket", message: expect.stringMatching(/unix:\/\/\/nonexistent\/docker\.sock.*--docker-endpoint/s) },
    ],
    ["a file without a listener", { kind: "unix", path: "/etc/passwd" }, { kind: "refused" }],
    ["a TCP port without a listener", { kind: "tcp", host: "127.0.0.1", port: 1 }, { kind: "refused" }],
  ])("%s", async (_when, endpoint, want) => {
    expect(await failure(new DockerClient(endpoint).connect())).toMatchObject(want);
  });

  test("something that does not use HTTP", async () => {
    using daemon = await listen((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
    const error = await failure(daemon.client.ping());
    expect(["not-docker", "connection-lost"]).toContain(error.kind);
  });

  test("an engine that does not respond: the deadline ends the call", async () => {
    using daemon = await listen(() => {});
    const error = await failure(daemon.client.ping({ timeoutMs: 30 }));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(error.message).toContain("GET /_ping");
  });

  test("a client may have a deadline of its own for all calls", async () => {
    using daemon = serve({ "GET /networks": endless });
    const client = new DockerClient({ kind: "unix", path: daemon.socketPath }, { timeoutMs: 40 });
    const error = await failure(client.listNetworks());
    expect(error).toMatchObject({ kind: "timeout" });
    expect(error.message).toContain("within 0.04 s");
  });

  test("the caller's signal ends a call and a stream", async () => {
    using daemon = serve({ "GET /networks": endless, "GET /events": endless });
    const { client } = daemon;
    await client.connect();
    const reason = new Error("enough");
    const abortSoon = () => {
      const stop = new AbortController();
      setTimeout(() => stop.abort(reason), 20);
      return stop.signal;
    };
    await expect(client.listNetworks({ signal: abortSoon() })).rejects.toBe(reason);
    for await (const _ of client.events({ signal: abortSoon() })) throw new Error("there was no event");
  });
});

describe("responses", () => {
  test("a refusal has status, operation and the engine's message", async () => {
    using daemon = serve({
      "POST /containers/create": () => Response.json({ message: "No such image: x:1" }, { status: 404 }),
    });
    const call = daemon.client.createContainer("n", { Image: "x:1" });
    await expect(call).rejects.toBeInstanceOf(DockerError);
    await expect(call).rejects.toMatchObject({
      status: 404,
      operation: "POST /containers/create",
      daemonMessage: "No such image: x:1",
      message: "Docker POST /containers/create answered 404: No such image: x:1",
    });
  });

  test("the error for a response of another shape names the field", async () => {
    using daemon = serve({ "GET /containers/json": () => Response.json([{ Id: "a" }, { Id: 5 }]) });
    const call = daemon.client.listContainers();
    await expect(call).rejects.toBeInstanceOf(DockerProtocolError);
    await expect(call).rejects.toThrow("Id: ");
  });

  test("a list of thousands of containers is read in parts, whatever their labels say", async () => {
    const list = Array.from({ length: 5_000 }, (_, at) => ({
      Id: `c${at}`,
      Labels: { text: '},{"Id":', at: `ä${at}` },
    }));
    using daemon = serve({ "GET /containers/json": () => Response.json(list) });
    const found = await daemon.client.listContainers();
    expect(found.map(({ Id, Labels }) => ({ Id, Labels }))).toEqual(list);
  });

  test("names and filters arrive as they are", async () => {
    using daemon = serve({
      "GET /containers/json": () => Response.json([]),
      "GET /images/127.0.0.1:5000/a/b:1/json": () => Response.json({ Id: "sha256:1" }),
    });
    const { client } = daemon;
    await client.listContainers({ all: true, filters: { label: ["a=b c&d"] } });
    expect((await client.inspectImage("127.0.0.1:5000/a/b:1")).Id).toBe("sha256:1");
    const list = daemon.requests.find(({ path }) => path === "/containers/json");
    expect(list?.query.get("all")).toBe("1");
    expect(JSON.parse(list?.query.get("filters") ?? "")).toEqual({ label: ["a=b c&d"] });
  });

  test.each([
    // API 1.41 does not know the signal, and would ignore it. Without a time the engine would wait for ten seconds.
    { api: "1.41", timeoutSeconds: 0, want: "t=0" },
    { api: "1.42", timeoutSeconds: 1.2, want: "t=2&signal=SIGINT" },
  ])("a stop by API $api says $want; one that has ended is no error", async ({ api, timeoutSeconds, want }) => {
    const routes = { "POST /containers/x/stop": () => new Response(null, { status: 304 }) };
    using daemon = serve(routes, { apiVersion: api });
    await daemon.client.stopContainer("x", { timeoutSeconds, signal: "SIGINT" });
    expect(daemon.requests.at(-1)?.query.toString()).toBe(want);
  });
});

describe("a create whose connection died", () => {
  const inspect = (labels: Record<string, string>) => () =>
    Response.json({ Id: "there", State: {}, Config: { Labels: labels }, HostConfig: {} });

  /** Lets the engine do its work and then drop the connection, the first `drops` times. */
  async function dyingDaemon(drops: number, upstream: FakeDaemon) {
    let dropped = 0;
    return listen((socket) => {
      socket.on("data", async (data) => {
        const [head = "", body = ""] = data.toString().split("\r\n\r\n");
        const [method = "", path = ""] = head.split(" ");
        const answer = await fetch(`http://d${path}`, { unix: upstream.socketPath, method, ...(body ? { body } : {}) });
        if (path.includes("/containers/create") && dropped++ < drops) return socket.destroy();
        const text = await answer.text();
        const api = answer.headers.get("api-version");
        socket.write(
          `HTTP/1.1 ${answer.status} X\r\nContent-Length: ${Buffer.byteLength(text)}\r\n${api ? `Api-Version: ${api}\r\n` : ""}\r\n${text}`,
        );
      });
    });
  }

  test("it was done: the container is found by its name, also with more labels than were asked for", async () => {
    using upstream = serve({
      "POST /containers/create": () => Response.json({ Id: "there" }, { status: 201 }),
      "GET /containers/name/json": inspect({ a: "b", other: "x" }),
    });
    using daemon = await dyingDaemon(1, upstream);
    const created = await daemon.client.createContainer("name", { Labels: { a: "b" } });
    expect(created.Id).toBe("there");
    expect(upstream.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  test("it was not done: it is asked for once more", async () => {
    using upstream = serve({ "POST /containers/create": () => Response.json({ Id: "second" }, { status: 201 }) });
    using daemon = await dyingDaemon(1, upstream);
    expect((await daemon.client.createContainer("name", {})).Id).toBe("second");
  });

  test("a foreign container of that name is not taken for ours", async () => {
    using upstream = serve({
      "POST /containers/create": () => Response.json({ Id: "there" }, { status: 201 }),
      "GET /containers/name/json": inspect({ a: "not b" }),
    });
    using daemon = await dyingDaemon(1, upstream);
    const error = await failure(daemon.client.createContainer("name", { Labels: { a: "b" } }));
    expect(error).toMatchObject({ kind: "connection-lost" });
  });
});

describe("streams", () => {
  const event = (action: string) =>
    `{"Type":"container","Action":"${action}","Actor":{"ID":"x","Attributes":{}},"time":1,"timeNano":1000000001}\n`;

  test("events come one by one, after onOpen; an engine that goes away is a lost connection", async () => {
    using daemon = serve({ "GET /events": () => new Response(event("create") + event("start")) });
    const order: string[] = [];
    const error = await failure(
      (async () => {
        const options = { since: "5.5", filters: { type: ["container"] }, onOpen: () => void order.push("open") };
        for await (const { action } of daemon.client.events(options)) order.push(action);
      })(),
    );
    expect(order).toEqual(["open", "create", "start"]);
    expect(error.kind).toBe("connection-lost");
    expect(daemon.requests.at(-1)?.query.get("since")).toBe("5.5");
  });

  test("events that are cut off in the middle are a lost connection too", async () => {
    using daemon = await cutOff(event("die"));
    const seen: string[] = [];
    const error = await failure(
      (async () => {
        for await (const { action } of daemon.client.events()) seen.push(action);
      })(),
    );
    expect(seen).toEqual(["die"]);
    expect(error.kind).toBe("connection-lost");
  });

  test("leaving the loop closes the connection", async () => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    using daemon = serve({ "GET /events": () => unended(event("start"), resolve) });
    for await (const _ of daemon.client.events()) break;
    await gone;
  });

  test.each([
    { when: "frames said by the type", type: "application/vnd.docker.multiplexed-stream", tty: undefined },
    { when: "frames of an old engine, as its inspection says", type: "", tty: false },
    { when: "raw said by the type", type: "application/vnd.docker.raw-stream", tty: undefined },
    { when: "raw of an old engine, as its inspection says", type: "", tty: true },
  ])("logs: $when", async ({ type, tty }) => {
    const raw = tty === true || type.includes("raw");
    using daemon = serve({
      "GET /containers/x/logs": () =>
        new Response(raw ? "out" : frame(1, "out"), { headers: { "Content-Type": type } }),
      "GET /containers/x/json": () => Response.json({ Id: "x", State: {}, Config: { Tty: tty }, HostConfig: {} }),
    });
    const seen: string[] = [];
    for await (const { stream, data } of await daemon.client.containerLogs("x", { tailLines: 0 })) {
      seen.push(`${stream} ${new TextDecoder().decode(data)}`);
    }
    expect(seen).toEqual(["stdout out"]);
    // tail 0 means none, not all.
    expect(daemon.requests.find(({ path }) => path.endsWith("/logs"))?.query.toString()).toBe(
      "stdout=1&stderr=1&tail=0",
    );
  });
});

describe("pull", () => {
  test("credentials and name go where the engine expects them", async () => {
    using daemon = serve({ "POST /images/create": () => new Response('{"status":"done"}\n') });
    const seen: string[] = [];
    await daemon.client.pullImage("127.0.0.1:5000/a:1", {
      auth: { username: "u", password: "p" },
      onProgress: ({ status }) => void seen.push(status),
    });
    const request = daemon.requests.at(-1);
    expect(seen).toEqual(["done"]);
    expect(request?.query.toString()).toBe("fromImage=127.0.0.1%3A5000%2Fa&tag=1");
    const auth = Buffer.from(request?.headers.get("x-registry-auth") ?? "", "base64url").toString();
    expect(JSON.parse(auth)).toEqual({ username: "u", password: "p" });
  });

  test("no line of progress for too long ends it", async () => {
    using daemon = serve({ "POST /images/create": () => unended('{"status":"Downloading"}\n') });
    const error = await failure(daemon.client.pullImage("a:1", { idleTimeoutMs: 40 }));
    expect(error.kind).toBe("timeout");
    expect(error.message).toContain("no progress");
  });

  test("an engine that dies in the middle is a lost connection, not a finished pull", async () => {
    using daemon = await cutOff('{"status":"Downloading"}\n');
    expect(await failure(daemon.client.pullImage("a:1"))).toMatchObject({ kind: "connection-lost" });
  });
});

describe("exec", () => {
  const exec = (overrides: FakeDaemonOptions["routes"] = {}) =>
    serve({
      "POST /containers/x/exec": () => Response.json({ Id: "e1" }, { status: 201 }),
      "POST /exec/e1/start": () => new Response(Buffer.concat([frame(1, "out "), frame(2, "err"), frame(1, "!")])),
      "GET /exec/e1/json": () => Response.json({ ID: "e1", Running: false, ExitCode: 3, Pid: 0 }),
      ...overrides,
    });

  test("output of both streams and the exit code", async () => {
    using daemon = exec();
    expect(await daemon.client.exec("x", ["sh", "-c", "true"])).toEqual({
      exitCode: 3,
      output: "out err!",
      stderr: "err",
      timedOut: false,
    });
    const create = daemon.requests.find(({ path }) => path === "/containers/x/exec");
    expect(JSON.parse(create?.body ?? "")).toEqual({
      Cmd: ["sh", "-c", "true"],
      AttachStdout: true,
      AttachStderr: true,
    });
  });

  test("output beyond the limit is dropped", async () => {
    using daemon = exec();
    const outcome = await daemon.client.exec("x", ["yes"], { maxOutputBytes: 5 });
    expect(outcome).toMatchObject({ output: "out e", exitCode: 3 });
  });

  test("an exit code that the engine records after the end of the stream is waited for", async () => {
    let inspections = 0;
    using daemon = exec({
      "GET /exec/e1/json": () =>
        Response.json({ ID: "e1", Running: ++inspections < 3, ExitCode: inspections < 3 ? null : 0, Pid: 0 }),
    });
    expect(await daemon.client.exec("x", ["true"])).toMatchObject({ exitCode: 0 });
  });

  test("a pid that is not a process of that container is left alone", async () => {
    const bystander = Bun.spawn(["sleep", "60"]);
    let inspections = 0;
    using daemon = exec({
      "POST /exec/e1/start": () => unended(),
      "GET /exec/e1/json": () =>
        Response.json({
          ID: "e1",
          Running: ++inspections < 3,
          ExitCode: inspections < 3 ? null : 137,
          Pid: bystander.pid,
          ContainerID: "c".repeat(64),
        }),
    });
    expect(await daemon.client.exec("x", ["sleep"], { timeoutMs: 20 })).toMatchObject({
      timedOut: true,
      exitCode: undefined,
    });
    expect(bystander.killed).toBe(false);
    expect(bystander.exitCode).toBeNull();
    bystander.kill();
  });

  test("a command that the engine never shows running has no result", async () => {
    using daemon = exec({ "POST /exec/e1/start": () => unended(), "GET /exec/e1/json": endless });
    await expect(daemon.client.exec("x", ["true"], { timeoutMs: 20 })).rejects.toMatchObject({ name: "TimeoutError" });
  });

  test("the engine refuses a container that does not run", async () => {
    using daemon = exec({
      "POST /containers/x/exec": () => Response.json({ message: "Container x is not running" }, { status: 409 }),
    });
    await expect(daemon.client.exec("x", ["true"], { timeoutMs: 1000 })).rejects.toMatchObject({ status: 409 });
  });
});
