import { expect, test } from "bun:test";
import { type RuntimeClassEntry, RuntimeClasses } from "../../../src/cluster/objects/runtime-classes.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const PATH = "/apis/node.k8s.io/v1/runtimeclasses";

function aWorld(classes?: RuntimeClassEntry[], kept?: RuntimeClassEntry[]) {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  const items = classes?.map(([name, handler]) => ({ metadata: { name }, handler }));
  if (items) api.set(PATH, { metadata: { resourceVersion: "1" }, items });
  let stored: readonly RuntimeClassEntry[] | undefined = kept;
  const file = {
    read: () => stored,
    write: (value: readonly RuntimeClassEntry[]) => {
      stored = value;
    },
  };
  const runtimes = new RuntimeClasses({ client: api, clock, stored: file });
  const handlerOf = async (runtimeClassName?: string) => {
    const found = runtimes.handlerOf(aPod(runtimeClassName === undefined ? {} : { runtimeClassName })).catch(String);
    await clock.advance(5_000);
    return await found;
  };
  return { api, handlerOf, stored: () => stored };
}

test("the handler of a class is the engine's runtime", async () => {
  const { handlerOf, stored } = aWorld([["gvisor", "runsc"]]);
  expect(await handlerOf("gvisor")).toBe("runsc");
  expect(stored()).toEqual([["gvisor", "runsc"]]);
});

test("the handler docker is the default runtime, as for dockershim", async () => {
  expect(await aWorld([["usual", "docker"]]).handlerOf("usual")).toBe("");
});

test("a class that is not there", async () => {
  expect(await aWorld([]).handlerOf("gvisor")).toBe('Error: runtimeclass.node.k8s.io "gvisor" not found');
});

test("an API server that does not answer: what an earlier process knew, else a failure", async () => {
  expect(await aWorld(undefined, [["gvisor", "runsc"]]).handlerOf("gvisor")).toBe("runsc");
  expect(await aWorld().handlerOf("gvisor")).toContain("the API server has not answered");
});

test("nothing is asked for a pod without a class", async () => {
  const { api, handlerOf } = aWorld();
  expect(await handlerOf()).toBe("");
  expect(api.requests).toEqual([]);
});
