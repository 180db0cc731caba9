import { expect, test } from "bun:test";
import { DockerPods } from "../../src/docker/docker-pods.ts";
import type { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { DockerError } from "../../src/docker/engine/docker-error.ts";
import { computeRootHash } from "../../src/docker/labels.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { aContainerRequest, aPod, aSandboxRequest } from "./mapping-requests.ts";

/** An engine whose event stream is open and silent, also while it is frozen. */
class SilentClient {
  isFrozen = false;
  streams = 0;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  async ping({ timeoutMs = 0 }: { timeoutMs?: number } = {}): Promise<void> {
    if (!this.isFrozen) return;
    await this.#clock.sleep(timeoutMs, new AbortController().signal);
    throw new Error("The Docker engine does not answer");
  }

  async connect(): Promise<void> {
    await this.ping({ timeoutMs: 10_000 });
  }

  async *events({ signal, onOpen }: { signal: AbortSignal; onOpen: () => void }) {
    this.streams++;
    onOpen();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }
}

test("an engine that hangs is lost within 40 s, and opened again when it answers", async () => {
  const clock = new FakeClock();
  const client = new SilentClient(clock);
  const pods = new DockerPods({
    client: client as unknown as DockerClient,
    owner: { nodeName: "n", rootHash: "r" },
    clock,
  });
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = pods.watch({
    onOpen: () => void seen.push("open"),
    onEvent: () => {},
    onLost: ({ message }) => void seen.push(message),
    signal: stop.signal,
  });
  await clock.advance(600_000);
  expect(seen).toEqual(["open"]);
  // Shorter than what a busy engine may take.
  client.isFrozen = true;
  await clock.advance(15_000);
  client.isFrozen = false;
  await clock.advance(60_000);
  expect(seen).toEqual(["open"]);
  client.isFrozen = true;
  await clock.advance(40_000);
  expect(seen).toEqual(["open", "The Docker engine does not answer"]);
  await clock.advance(120_000);
  client.isFrozen = false;
  await clock.advance(15_000);
  expect([seen.at(-1), client.streams]).toEqual(["open", 2]);
  stop.abort();
  await settle();
  await watching;
  expect(clock.pendingTimers).toBe(0);
});

test("what the engine would not be asked for is found before a container is created", () => {
  const owner = { nodeName: "n", rootHash: "r" };
  const pods = new DockerPods({ client: {} as DockerClient, owner, clock: new FakeClock() });
  const requestOf = (securityContext: object, workingDir = "") =>
    aContainerRequest(aPod({ container: { securityContext, workingDir } }));
  expect(() => pods.checkContainer(requestOf({ runAsNonRoot: true }))).toThrow("image will run as root");
  expect(() => pods.checkContainer(requestOf({ runAsNonRoot: true, runAsUser: 5 }))).not.toThrow();
  const capabilities = { add: ["net_admin", "CAP_BPF"], drop: ["ALL"] };
  expect(() => pods.checkContainer(requestOf({ capabilities }, "/srv"))).not.toThrow();
  for (const wrong of [{ add: ["NETADMIN"] }, { drop: ["CAP_ALL"] }])
    expect(() => pods.checkContainer(requestOf({ capabilities: wrong }))).toThrow("unknown capability");
  expect(() => pods.checkContainer(requestOf({}, "srv"))).toThrow("the working directory 'srv' is invalid");
});

test("the removal of a container is reported, also of the one that had the name of a new one", async () => {
  const owner = { nodeName: "n", rootHash: "r" };
  const names: string[] = [];
  const labels = { "kubelet-ts.io/node": "n", "kubelet-ts.io/root": "r", "io.kubernetes.pod.uid": "u" };
  const client: Partial<DockerClient> = {
    createContainer: async (name) => {
      if (names.push(name) === 1) throw new DockerError(409, "POST /containers/create", "the name is in use");
      return { Id: "new", Warnings: [] };
    },
    inspectContainer: async () => ({ Id: "old", Config: { Labels: labels }, State: { Status: "created" } }) as never,
    removeContainer: async () => {},
  };
  const removed: string[] = [];
  const pods = new DockerPods({
    client: client as DockerClient,
    owner,
    clock: new FakeClock(),
    onRemoved: (uid, id) => void removed.push(`${uid} ${id}`),
  });
  const { signal } = new AbortController();
  expect(await pods.createContainer(aContainerRequest(aPod({})), signal)).toBe("new");
  await pods.remove("new", "u", signal);
  expect(removed).toEqual(["u old", "u new"]);
});

test.each([
  ["ran by another root directory", { root: "other", isRunning: false }],
  ["has the name of another program's container", { root: undefined, isRunning: true }],
])("a pod that %s", async (_, { root, isRunning }) => {
  const request = aContainerRequest(aPod({}));
  const names: string[] = [];
  const labels = { "io.kubernetes.pod.uid": request.pod.metadata.uid, ...(root && { "kubelet-ts.io/root": root }) };
  const client: Partial<DockerClient> = {
    createContainer: async (name) => {
      if (names.push(name) === 1) throw new DockerError(409, "POST /containers/create", "the name is in use");
      return { Id: "new", Warnings: [] };
    },
    inspectContainer: async () =>
      ({ Id: "old", Config: { Labels: labels }, State: { Status: "running", Running: isRunning } }) as never,
  };
  const owner = { nodeName: "n", rootHash: "r" };
  const pods = new DockerPods({ client: client as DockerClient, owner, clock: new FakeClock() });
  const created = await pods.createContainer(request, new AbortController().signal);
  expect(created && names.at(-1)).toMatch(/_[0-9a-f]{8}$/);
});

test.each([
  ["another root directory", "/srv/a", ["/x/pods/y:/z", "/srv/a/pods/1/etc-hosts:/etc/hosts"], "directory /srv/a"],
  ["one whose path is not known", "/srv/a", ["/x/pods/y:/z"], "directory DIRECTORY"],
  ["this root directory", "/srv/b", [], "made"],
])("a pod that runs from %s is started once", async (_, rootDir, Binds, want) => {
  const Labels = { "kubelet-ts.io/root": computeRootHash(rootDir), "io.kubernetes.pod.name": "web-1" };
  const client: Partial<DockerClient> = {
    listContainers: async () => [{ Id: "old", Labels }] as never,
    inspectContainerRaw: async () => ({ HostConfig: { Binds } }),
    createContainer: () => Promise.reject(new Error("made")),
  };
  const owner = { nodeName: "n", rootHash: computeRootHash("/srv/b") };
  const pods = new DockerPods({ client: client as DockerClient, owner, clock: new FakeClock() });
  const started = pods.startSandbox(aSandboxRequest(aPod({})), new AbortController().signal);
  await expect(started).rejects.toThrow(want === "made" ? want : `pod "web-1" runs already, from the root ${want}`);
});
