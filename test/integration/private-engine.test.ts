import { expect, test } from "bun:test";
import { describeWithEngine, privateEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";

const PAGE = ["sh", "-c", "echo hello > /tmp/index.html; exec httpd -f -p 80 -h /tmp"];

describeWithEngine("a private engine, next to the machine's", () => {
  test("runs containers that the host reaches, and comes back with them after a restart and after a kill", async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const { Id } = await engine.docker.createContainer("page", {
      Image: "busybox:test",
      Cmd: PAGE,
      StopSignal: "SIGKILL",
    });
    await engine.docker.startContainer(Id);
    const { bridge } = (await engine.docker.inspectContainer(Id)).NetworkSettings.Networks;
    const fetchPage = async () => (await fetch(`http://${bridge?.IPAddress}/`)).text();
    expect(await until("the page", fetchPage)).toBe("hello\n");

    await engine.stop();
    await engine.start();
    expect((await engine.docker.inspectContainer(Id)).State.Running).toBe(false);

    await engine.docker.startContainer(Id);
    await engine.kill();
    await expect(engine.docker.ping({ timeoutMs: 2_000 })).rejects.toThrow();
    await engine.start();
    expect((await engine.docker.listContainers({ all: true })).map((container) => container.Id)).toEqual([Id]);
  });

  test("answers no request while frozen", async () => {
    const engine = await privateEngine();
    engine.freeze();
    await expect(engine.docker.ping({ timeoutMs: 300 })).rejects.toThrow();
    engine.thaw();
    await until("an answer again", async () => {
      await engine.docker.ping({ timeoutMs: 2_000 });
      return true;
    });
  });
});
