import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { callEngine, readEngine } from "../support/test-node.ts";

describeWithEngine("import docker", () => {
  test("a container becomes a pod that passes validate and runs; the container stays as it is", async () => {
    const node = testNode();
    const name = `${node.name}-web`;
    const { Id: id } = await node.docker.createContainer(name, {
      Image: "busybox:test",
      Cmd: ["sh", "-c", 'cat /t/x; echo "$GREETING $DB_PASSWORD"; exec sleep 3600'],
      Env: ["GREETING=hello", "DB_PASSWORD=hunter2"],
      Labels: { [LABEL.node]: node.bareName },
      HostConfig: { Memory: 33_554_432, Tmpfs: { "/t": "size=1m" }, RestartPolicy: { Name: "always" } },
      // biome-ignore lint/suspicious/noExplicitAny: more than what kubelet-ts itself sends
    } as any);
    await node.docker.startContainer(id);
    const before = await readEngine(`/containers/${id}/json`);

    const imported = await node
      .spawn(["import", "docker", name, `--docker-endpoint=${node.identityFlags()[2]!.split("=")[1]}`])
      .finished();
    expect(imported.stderr).toContain(`docker stop ${name}`);
    expect(imported.stderr).not.toContain("hunter2");
    expect(imported.stdout).toContain("kind: Secret");
    const file = join(node.directory, "web.yaml");
    writeFileSync(file, imported.stdout);
    expect((await node.spawn(["validate", file]).finished()).exitCode).toBe(0);

    expect((await node.runOnce([file])).exitCode).toBe(0);
    const app = await node.runningContainer(name);
    await node.until("its output", async () => (await node.logs(app.Id)).includes("hello hunter2"));
    expect(await readEngine(`/containers/${id}/json`)).toBe(before);
    await callEngine(`/containers/${id}/kill`);
  });
});
