/** The real-engine harness: what an integration test imports. */
import { afterAll, afterEach, beforeEach, describe, setDefaultTimeout } from "bun:test";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { PrivateEngine } from "./private-engine.ts";
import { engineSocketPath, TestNode, type TestNodeOptions } from "./test-node.ts";
import { SLOWNESS } from "./until.ts";

/** Longest time of one test against a real engine on a busy machine. */
const TEST_LIMIT_MS = 180_000 * SLOWNESS;

const nodes: TestNode[] = [];
const engines: PrivateEngine[] = [];

/** Their numbers before the tests that are running now: these belong to the file. */
let ofFile = { nodes: 0, engines: 0 };
let runningTests = 0;
const cleanUps: Promise<readonly PromiseSettledResult<void>[]>[] = [];

/** Removes all but the first nodes and engines, while the next tests run: their pods would go on with probes and restarts. */
function cleanUpAllBut(first: { nodes: number; engines: number }): void {
  const ended = { nodes: nodes.splice(first.nodes), engines: engines.splice(first.engines) };
  const settle = async () => {
    const outcomes = await Promise.allSettled(ended.nodes.map((node) => node.cleanUp()));
    return [...outcomes, ...(await Promise.allSettled(ended.engines.map((engine) => engine.cleanUp())))];
  };
  cleanUps.push(settle());
}

/** A node of its own; removed with all it started after the test or the file that made it, however that ended. */
export function testNode(options: TestNodeOptions = {}): TestNode {
  const node = new TestNode(options);
  nodes.push(node);
  return node;
}

/** A dockerd of its own, for tests that disturb the engine: restart it, kill it, freeze it. Stopped like `testNode`. */
export async function privateEngine(options?: ConstructorParameters<typeof PrivateEngine>[0]): Promise<PrivateEngine> {
  const engine = new PrivateEngine(options);
  engines.push(engine);
  await engine.start();
  return engine;
}

/** undefined: one answers. Asked once per test file. */
const noEngineBecause = await whyNoEngine();

async function whyNoEngine(): Promise<string | undefined> {
  try {
    await new DockerClient({ kind: "unix", path: engineSocketPath() }).ping({ timeoutMs: 5_000 });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Whether the name server of a Docker network answers: it needs a kernel that translates addresses, which the User Mode
 * Linux of `npm run test:vm` does not.
 */
export const hasNetworkNames = !process.env.KUBELET_TS_TEST_VM;
if (!hasNetworkNames) console.warn("SKIPPED names in Docker networks: this kernel has no address translation");

/**
 * `describe` for tests that need a Docker engine. Without one they are skipped with a warning; where CI is set that is a
 * failure. Removes everything its nodes and engines left, also after a failure.
 */
export function describeWithEngine(title: string, body: () => void): void {
  setDefaultTimeout(TEST_LIMIT_MS);
  if (noEngineBecause !== undefined) {
    if (process.env.CI) throw new Error(`"${title}" needs a Docker engine: ${noEngineBecause}`);
    console.warn(`SKIPPED "${title}": no Docker engine (${noEngineBecause}). Start one with: npm run engine`);
  }
  describe.skipIf(noEngineBecause !== undefined)(title, () => {
    beforeEach(() => {
      if (runningTests === 0) ofFile = { nodes: nodes.length, engines: engines.length };
      runningTests += 1;
    });
    afterEach(() => {
      runningTests -= 1;
      if (runningTests === 0) cleanUpAllBut(ofFile);
    });
    body();
    if (noEngineBecause !== undefined) return;
    afterAll(async () => {
      cleanUpAllBut({ nodes: 0, engines: 0 });
      const outcomes = (await Promise.all(cleanUps.splice(0))).flat();
      const failures = outcomes.filter((outcome) => outcome.status === "rejected").map((outcome) => outcome.reason);
      if (failures.length > 0) throw new AggregateError(failures, "Clean-up after the tests failed.");
    });
  });
}
