import { beforeAll, expect, test } from "bun:test";
import type { ContainerStatus } from "../../src/base/api/pod.ts";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { sleeper } from "../support/manifests.ts";
import { callEngine, type PodItem, type TestNode } from "../support/test-node.ts";

/** A pod of the recorded cases: one container of busybox. */
const write = (node: TestNode, name: string, container: object, spec = {}) =>
  node.writeManifest(`${name}.json`, sleeper(name, { name: "c", ...container }, spec));

const exec = (...command: string[]) => ({ exec: { command } });

/** Waits until the pod's first container is as wanted. */
function untilContainer(
  node: TestNode,
  name: string,
  what: string,
  is: (status: ContainerStatus, pod: PodItem) => boolean,
) {
  return node.until(
    `${name} ${what}`,
    async () => {
      const pod = await node.pod(name);
      const status = pod?.status.containerStatuses?.[0];
      return pod && status && is(status, pod) ? { pod, status } : undefined;
    },
    90_000,
  );
}

const isRunning = (status: ContainerStatus): boolean => status.state?.running !== undefined;

function condition(pod: PodItem, type: string): string | undefined {
  return pod.status.conditions?.find((candidate) => candidate.type === type)?.status;
}

describeWithEngine("probes and hooks of the recorded cases", () => {
  const node = testNode();
  let kubelet: KubeletProcess;
  beforeAll(async () => {
    kubelet = await node.start();
  });

  test("the HEALTHCHECK of an image, by annotation, is the probe of its container", async () => {
    const { Id } = await node.docker.createContainer("", {
      Image: "busybox:test",
      Labels: { [LABEL.node]: node.bareName },
    });
    const image = `${node.bareName}-checked:1`;
    const changes = encodeURIComponent("HEALTHCHECK --interval=1s --timeout=2s --retries=2 CMD test -e /tmp/ok");
    await callEngine(`/commit?container=${Id}&repo=${image.replace(":1", "")}&tag=1&changes=${changes}`);
    await node.docker.removeContainer(Id, { force: true });
    const annotated = (name: string, kind: string, container: object) =>
      node.writeManifest(
        `${name}.json`,
        sleeper(
          name,
          { name: "c", image, imagePullPolicy: "Never", ...container },
          {},
          { annotations: { "kubelet-ts.io/image-healthcheck": kind } },
        ),
      );
    try {
      annotated("imgready", "c=readiness", {});
      annotated("imglive", "liveness", { command: ["sh", "-c", "touch /tmp/ok; sleep 2; rm /tmp/ok; sleep 3600"] });
      write(node, "imgplain", { image, imagePullPolicy: "Never" });
      await untilContainer(node, "imgplain", "is ready", ({ ready }) => ready);
      await node.until("a failed readiness probe", async () =>
        (await node.read("/api/v1/events")).includes("Readiness probe failed"),
      );
      const { pod } = await untilContainer(
        node,
        "imgready",
        "is not ready",
        (status) => isRunning(status) && !status.ready,
      );
      expect(pod.spec.containers[0]?.readinessProbe).toEqual({
        exec: { command: ["/bin/sh", "-c", "test -e /tmp/ok"] },
        timeoutSeconds: 2,
        periodSeconds: 1,
        successThreshold: 1,
        failureThreshold: 2,
      });
      expect((await node.run("explain pod imgready")).stdout).toContain("readiness probe");
      await node.run("exec imgready -- touch /tmp/ok");
      await untilContainer(node, "imgready", "is ready", ({ ready, restartCount }) => ready && restartCount === 0);
      await untilContainer(node, "imglive", "was restarted", ({ restartCount }) => restartCount > 0);
    } finally {
      for (const name of ["imgready", "imglive", "imgplain"]) node.removeManifest(`${name}.json`);
      await node.until("no pod", async () => (await node.containers("c")).length === 0);
      await node.docker.removeImage(image, { force: true });
    }
  });

  test("39: readiness by exec, http and tcp", async () => {
    const serve = { command: ["sh", "-c", "mkdir /w; echo hi >/w/ok; httpd -f -p 8000 -h /w"] };
    const httpHeaders = [{ name: "X-A", value: "b" }];
    const pods = {
      readydelay: { readinessProbe: { ...exec("true"), periodSeconds: 1, initialDelaySeconds: 2 } },
      readynoprogram: { readinessProbe: { ...exec("/no-such-program"), periodSeconds: 1 } },
      readyexecfail: { readinessProbe: { ...exec("cat", "/nope"), periodSeconds: 1, failureThreshold: 2 } },
      readyhttp: {
        ...serve,
        ports: [{ name: "web", containerPort: 8000 }],
        readinessProbe: { httpGet: { path: "/ok", port: "web", httpHeaders }, periodSeconds: 1 },
      },
      readyhttp404: { ...serve, readinessProbe: { httpGet: { path: "/nope", port: 8000 }, periodSeconds: 1 } },
      readyrefused: { readinessProbe: { tcpSocket: { port: 7001 }, periodSeconds: 1 } },
      readytimeout: { readinessProbe: { ...exec("sleep", "5"), periodSeconds: 1, timeoutSeconds: 1 } },
    };
    for (const [name, container] of Object.entries(pods)) write(node, name, container);

    for (const name of ["readydelay", "readyhttp"]) {
      const { pod } = await untilContainer(node, name, "to be ready", ({ ready }) => ready);
      expect(condition(pod, "Ready")).toBe("True");
    }
    const messages = {
      readynoprogram: "/no-such-program: no such file or directory",
      readyexecfail: "Readiness probe failed: cat: can't open '/nope': No such file or directory",
      readyhttp404: "Readiness probe failed: HTTP probe failed with statuscode: 404",
      readyrefused: ":7001: connect: connection refused",
      readytimeout: 'Readiness probe failed: command timed out: "sleep 5" timed out after 1s',
    };
    for (const [name, message] of Object.entries(messages)) {
      await node.untilLogged(kubelet, message);
      const { status, pod } = await untilContainer(node, name, "to run", isRunning);
      expect(status).toMatchObject({ ready: false, started: true, restartCount: 0 });
      expect(condition(pod, "ContainersReady")).toBe("False");
    }
    // Attempts that timed out were killed each time: no more than those of the moment are there.
    const [timeout] = (await node.containers("c")).filter(({ Names }) => Names[0]?.includes("readytimeout"));
    await Bun.sleep(2000);
    const processes = await node.exec(timeout!.Id, "ps", "-o", "args");
    expect(processes.split("\n").filter((line) => line === "sleep 5").length).toBeLessThanOrEqual(1);
  });

  test("killing and restarting the kubelet flips no pod's readiness", async () => {
    const node = testNode();
    // Asked once when the startup probe succeeds, then not for minutes: only what was remembered says it is ready.
    const readinessProbe = { ...exec("true"), periodSeconds: 600 };
    write(node, "slow", { startupProbe: { ...exec("true"), periodSeconds: 1 }, readinessProbe });
    const first = await node.start();
    const before = await untilContainer(node, "slow", "to be ready", ({ ready }) => ready);
    await first.kill();

    await node.start();
    const answers: string[] = [];
    for (let reading = 0; reading < 150; reading++) {
      const [pod] = await node.pods();
      const status = pod?.status.containerStatuses?.[0];
      if (status) answers.push(`${pod.status.phase} ${status.ready} ${status.started} ${status.containerID}`);
      await Bun.sleep(10);
    }
    expect([...new Set(answers)]).toEqual([`Running true true ${before.status.containerID}`]);
  });
});
