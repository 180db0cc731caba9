import { describe } from "bun:test";
import { testEngineContract } from "../../support/engine-contract.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeVolumeEngine } from "../../support/volume-world.ts";

describe("the fake engine of the tests", () => {
  testEngineContract(() => {
    const clock = new FakeClock();
    return {
      pods: new FakeEngine(clock),
      volumes: new FakeVolumeEngine(),
      finish: async (step) => {
        await clock.advance(100);
        return step;
      },
    };
  });
});
