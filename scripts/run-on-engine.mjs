import { ensureEngine, stopOwnEngine } from "./engine.mjs";
import { EXAMPLE_IMAGES, TEST_IMAGES } from "./image-recipes.mjs";
import { ensureImages } from "./images.mjs";
import { heading, step } from "./say.mjs";
import { sweepCniRules } from "./test-sweep.mjs";
import { ensurePackages } from "./workspace.mjs";

/**
 * Sets up packages, an engine and its images, runs tests, removes what they left and prints the summary.
 * @param {import("./test-run.mjs").TestRun} run
 * @param {() => Promise<void>} tests
 */
export async function runOnEngine(run, tests) {
  /** @type {import("./engine.mjs").Engine | undefined} */
  let engine;
  try {
    heading("Set-up");
    await ensurePackages();
    sweepCniRules();
    engine = await ensureEngine();
    await ensureImages(engine.endpoint, [...EXAMPLE_IMAGES, ...TEST_IMAGES]);
    await tests();
  } catch (error) {
    run.fail(error);
  }
  try {
    await run.sweep(engine?.endpoint);
    if (engine?.startedHere && (await stopOwnEngine())) step("engine", "stopped the dockerd that was started here");
  } catch (error) {
    run.fail(error, "cleaning up: ");
  }
  run.summarize();
}
