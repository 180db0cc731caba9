import { beforeEach, expect, test } from "bun:test";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

let world: KubeletWorld;
const once = (image = "job:1") => named("job", { restartPolicy: "Never", containers: [aContainer({ image })] });

beforeEach(() => {
  world = new KubeletWorld();
});

async function finished(): Promise<void> {
  await world.started(once());
  await world.exit("job", "app", 0, 100);
}

test("the volumes of a pod go when it is done and its sandbox has stopped, once", async () => {
  await finished();
  expect(world.engine.running()).toEqual([]);
  expect(world.engine.releases).toEqual(["job-node1"]);
  await world.clock.advance(600_000);
  expect(world.engine.releases).toHaveLength(1);
});

test("a pod that is not done keeps them", async () => {
  await world.started(named("web"));
  await world.exit("web", "app", 1, 600_000);
  expect(world.engine.releases).toEqual([]);
});

test("what is still in use is tried again", async () => {
  world.engine.failures.set("release", { error: new Error("busy"), times: 1 });
  await finished();
  await world.clock.advance(20_000);
  expect(world.engine.releases).toHaveLength(2);
});

test("every end of a pod that an edit made run again counts", async () => {
  await finished();
  for (const image of ["job:2", "job:1"]) {
    world.want(once(image));
    await world.clock.advance(100);
    await world.exit("job", "app", 0, 100);
  }
  expect(world.engine.releases).toHaveLength(3);
});

test.each(["while the kubelet runs", "while the kubelet does not run"])(
  "an edit of a pod past its deadline, %s, gives it all of its time again",
  async (when) => {
    const limited = (image: string) => {
      const job = once(image);
      return { ...job, spec: { ...job.spec, activeDeadlineSeconds: 60 } };
    };
    await world.started(limited("job:1"));
    await world.clock.advance(61_000);
    expect(world.statusOf("job")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
    await world.clock.advance(600_000);
    if (when === "while the kubelet does not run") world.renew();
    const editedAt = `${world.clock.now().toISOString().slice(0, 19)}Z`;
    await world.started(limited("job:2"));
    await world.clock.advance(59_000);
    expect(world.statusOf("job")).toMatchObject({ phase: "Running", startTime: editedAt });
    await world.clock.advance(2_000);
    expect(world.statusOf("job")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
  },
);
