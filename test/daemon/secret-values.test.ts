import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Secret } from "../../src/base/api/config-objects.ts";
import { TaskTimeoutError } from "../../src/base/concurrency/worker-pool.ts";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import { SecretValues } from "../../src/daemon/secret-values.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const temp = tempDirs();

const MISSING = Object.assign(new Error("no such file"), { code: "ENOENT" });

/** Files by path; an Error is thrown, "hangs" is answered by a timeout after ten seconds. */
function setUp(files: Record<string, string | Error>) {
  const clock = new FakeClock();
  const published: DesiredState[] = [];
  const values = new SecretValues({
    clock,
    logger: new RecordingLogger(),
    credentialsDir: undefined,
    readBytes: async (path) => {
      const found = files[path] ?? MISSING;
      if (found === "hangs") {
        await clock.sleep(10_000);
        throw new TaskTimeoutError("no answer within 10 s");
      }
      if (typeof found !== "string") throw found;
      return Buffer.from(found);
    },
    next: { setDesired: (state) => void published.push(state) },
  });
  return { clock, published, values, files };
}

const secretWith = (...sources: string[]): DesiredState => {
  const annotations = { "kubelet-ts.io/secret-from": sources.join(",") };
  const secret = { metadata: { name: "db", annotations }, data: { own: "eA==" } } as unknown as Secret;
  return { pods: [], configMaps: new Map(), secrets: new Map([["default/db", secret]]) };
};
const readKey = (state: DesiredState | undefined, key: string) =>
  Buffer.from(state?.secrets.get("default/db")?.data?.[key] ?? "", "base64").toString();

test("a value that cannot be read any more stays as it was, and the one that replaces it is published", async () => {
  const { clock, published, values, files } = setUp({ "/nowhere/a": "first" });
  values.setDesired(secretWith("a=file:/nowhere/a"), true);
  await clock.advance(0);
  expect(published.map((state) => readKey(state, "a"))).toEqual(["first"]);
  delete files["/nowhere/a"];
  await clock.advance(60_000);
  files["/nowhere/a"] = "second";
  await clock.advance(60_000);
  expect(published.map((state) => readKey(state, "a"))).toEqual(["first", "second"]);
  expect(published.every(({ unreadSecrets }) => unreadSecrets === undefined)).toBe(true);
  values.stop();
});

test("another state with the same values has the same Secrets", async () => {
  const { clock, published, values } = setUp({ "/nowhere/a": "first" });
  for (let round = 0; round < 2; round++) {
    values.setDesired(secretWith("a=file:/nowhere/a"), true);
    await clock.advance(0);
  }
  expect(published).toHaveLength(2);
  expect(published[1]!.secrets).toBe(published[0]!.secrets);
  values.stop();
});

test("after a stop nothing is published, and values of Secrets that are gone are forgotten", async () => {
  const { clock, published, values, files } = setUp({ "/nowhere/a": "first", "/nowhere/b": "other" });
  values.setDesired(secretWith("a=file:/nowhere/a"), true);
  await clock.advance(0);
  values.setDesired(secretWith("b=file:/nowhere/b"), true);
  await clock.advance(0);
  delete files["/nowhere/a"];
  values.setDesired(secretWith("a=file:/nowhere/a"), true);
  await clock.advance(0);
  expect(published.map((state) => [readKey(state, "a"), readKey(state, "b")])).toEqual([
    ["first", ""],
    ["", "other"],
    ["", ""],
  ]);
  values.setDesired(secretWith("b=file:/nowhere/b"), true);
  values.stop();
  await clock.advance(120_000);
  expect(published).toHaveLength(3);
  expect(clock.pendingTimers).toBe(0);
});

test("files on a disk that does not answer delay others by a second, together", async () => {
  const hanging = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`/nowhere/${index}`, "hangs"]));
  const { clock, published, values, files } = setUp({ ...hanging, "/nowhere/a": "here" });
  values.setDesired(
    secretWith("a=file:/nowhere/a", ...Object.keys(hanging).map((path, i) => `k${i}=file:${path}`)),
    true,
  );
  await clock.advance(1000);
  expect(readKey(published[0], "a")).toBe("here");
  expect(readKey(published[0], "own")).toBe("x");
  expect([...(published[0]?.unreadSecrets ?? [])]).toEqual(["default/db"]);
  for (const path of Object.keys(hanging)) files[path] = "back";
  await clock.advance(60_000);
  expect(readKey(published.at(-1), "k7")).toBe("back");
  expect(published.at(-1)?.unreadSecrets).toBeUndefined();
  values.stop();
  expect(clock.pendingTimers).toBe(0);
});

test("a file that was never there: the Secret counts as not read, so that no running container is restarted for it", async () => {
  const { clock, published, values } = setUp({});
  values.setDesired(secretWith("a=file:/nowhere/a"), true);
  await clock.advance(0);
  expect([...(published[0]?.unreadSecrets ?? [])]).toEqual(["default/db"]);
  values.stop();
});

test("a file that is written between the first read and its watch is not missed", async () => {
  const file = join(temp(), "password");
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let reads = 0;
  const values = new SecretValues({
    clock: new FakeClock(),
    logger: new RecordingLogger(),
    credentialsDir: undefined,
    readBytes: async () => {
      if (reads++ > 0) return readFileSync(file);
      writeFileSync(file, "late");
      throw MISSING;
    },
    next: { setDesired: (state) => readKey(state, "password") !== "" && resolve(readKey(state, "password")) },
  });
  values.setDesired(secretWith(`password=file:${file}`), true);
  expect(await promise).toBe("late");
  values.stop();
});

test("a state without such Secrets is not followed by the state before it, whose file did not answer", async () => {
  const { clock, published, values } = setUp({ "/nowhere/a": "hangs" });
  values.setDesired(secretWith("a=file:/nowhere/a"), true);
  const without: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  values.setDesired(without, true);
  await clock.advance(20_000);
  expect(published).toEqual([without]);
});
