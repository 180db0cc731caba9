import { expect, test } from "bun:test";
import type { ContainerStatus, Pod, PodStatus } from "../../src/base/api/pod.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { TestNode } from "../support/test-node.ts";

/** A pod of the recorded cases: one container of busybox. */
function manifest(name: string, container: object, spec: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      ...spec,
      containers: [{ name: "c", image: "busybox:test", command: ["sleep", "3600"], ...container }],
    },
  };
}

type Seen = Pod & { status: PodStatus };

/** Waits until the pod's first container is as wanted. */
function untilContainer(
  node: TestNode,
  name: string,
  what: string,
  is: (status: ContainerStatus, pod: Seen) => boolean,
) {
  return node.until(
    `${name} ${what}`,
    async () => {
      const pod = (await node.pods()).find(({ metadata }) => metadata.name === `${name}-${node.name}`);
      const status = pod?.status.containerStatuses?.[0];
      return pod && status && is(status, pod) ? { pod, status } : undefined;
    },
    90_000,
  );
}

const isRunning = (status: ContainerStatus): boolean => status.state?.running !== undefined;

function condition(pod: Seen, type: string): string | undefined {
  return pod.status.conditions?.find((candidate) => candidate.type === type)?.status;
}

describeWithEngine("probes and hooks of the recorded cases", () => {
  test("39: readiness by exec, http and tcp", async () => {
    const node = testNode();
    const serve = (path: string) => ["sh", "-c", `mkdir /w; echo hi >/w/ok; httpd -f -p 8000 -h /w; # ${path}`];
    const ports = [{ name: "web", containerPort: 8000 }];
    const pods = {
      readydelay: { readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1, initialDelaySeconds: 4 } },
      readyexecfail: { readinessProbe: { exec: { command: ["cat", "/nope"] }, periodSeconds: 1, failureThreshold: 2 } },
      readyhttp: {
        command: serve("/ok"),
        ports,
        readinessProbe: { httpGet: { path: "/ok", port: "web", httpHeaders: [{ name: "X-A", value: "b" }] } },
      },
      readyhttp404: {
        command: serve("/nope"),
        readinessProbe: { httpGet: { path: "/nope", port: 8000 }, periodSeconds: 1 },
      },
      readyrefused: { readinessProbe: { tcpSocket: { port: 7001 }, periodSeconds: 1 } },
      readytimeout: { readinessProbe: { exec: { command: ["sleep", "5"] }, periodSeconds: 1, timeoutSeconds: 1 } },
    };
    for (const [name, container] of Object.entries(pods)) node.writeManifest(`${name}.json`, manifest(name, container));
    const kubelet = await node.start();

    for (const name of ["readydelay", "readyhttp"]) {
      const { pod } = await untilContainer(node, name, "to be ready", ({ ready }) => ready);
      expect(condition(pod, "Ready")).toBe("True");
    }
    const messages = {
      readyexecfail: "Readiness probe failed: cat: can't open '/nope': No such file or directory",
      readyhttp404: "Readiness probe failed: HTTP probe failed with statuscode: 404",
      readyrefused: ":7001: connect: connection refused",
      readytimeout: 'Readiness probe failed: command timed out: "sleep 5" timed out after 1s',
    };
    for (const [name, message] of Object.entries(messages)) {
      await node.until(`the event of ${name}`, () => kubelet.log.includes(message));
      const { status, pod } = await untilContainer(node, name, "to run", isRunning);
      expect(status).toMatchObject({ ready: false, started: true, restartCount: 0 });
      expect(condition(pod, "ContainersReady")).toBe("False");
    }
    // Attempts that timed out were killed each time: no more than those of the moment are there.
    const [timeout] = (await node.containers("c")).filter(({ Names }) => Names[0]?.includes("readytimeout"));
    await Bun.sleep(2000);
    const processes = (await node.docker.exec(timeout!.Id, ["ps", "-o", "args"])).output;
    expect(processes.split("\n").filter((line) => line === "sleep 5").length).toBeLessThanOrEqual(1);
    await kubelet.stop();
  });

  test("40: liveness that fails restarts the container, or ends a pod that never restarts", async () => {
    const node = testNode();
    const command = ["sh", "-c", "touch /ok; sleep 4; rm /ok; sleep 3600"];
    const livenessProbe = { exec: { command: ["cat", "/ok"] }, periodSeconds: 1, failureThreshold: 2 };
    node.writeManifest("livefail.json", manifest("livefail", { command, livenessProbe }));
    node.writeManifest("livenever.json", manifest("livenever", { command, livenessProbe }, { restartPolicy: "Never" }));
    const http = { livenessProbe: { httpGet: { path: "/x", port: 8080 }, periodSeconds: 2, failureThreshold: 3 } };
    node.writeManifest("livehttp.json", manifest("livehttp", http));
    const kubelet = await node.start();

    for (const name of ["livefail", "livehttp"]) {
      const { status } = await untilContainer(node, name, "to be restarted", (seen) => seen.restartCount > 0);
      expect(status.lastState?.terminated).toMatchObject({ exitCode: 137, reason: "Error" });
    }
    expect(kubelet.log).toContain("Container c failed liveness probe, will be restarted");
    expect(kubelet.log).toMatch(
      /Liveness probe failed: Get "http:\/\/([\d.]+):8080\/x": dial tcp \1:8080: connect: connection refused/,
    );
    const { pod, status } = await untilContainer(node, "livenever", "to end", (seen) => !!seen.state?.terminated);
    expect(status).toMatchObject({ restartCount: 0, ready: false, state: { terminated: { exitCode: 137 } } });
    await node.until("livenever to be Failed", async () => {
      const seen = (await node.pods()).find(({ metadata }) => metadata.name === pod.metadata.name);
      return seen?.status.phase === "Failed";
    });
    await kubelet.stop();
  });

  test("startup probe: readiness and liveness wait for it; its failure restarts", async () => {
    const node = testNode();
    const startupProbe = { exec: { command: ["cat", "/up"] }, periodSeconds: 1, failureThreshold: 30 };
    const gated = {
      command: ["sh", "-c", "sleep 5; touch /up; sleep 3600"],
      startupProbe,
      livenessProbe: { exec: { command: ["cat", "/up"] }, periodSeconds: 1, failureThreshold: 1 },
      readinessProbe: { exec: { command: ["cat", "/up"] }, periodSeconds: 1 },
    };
    node.writeManifest("gated.json", manifest("gated", gated));
    const never = { startupProbe: { ...startupProbe, failureThreshold: 2 } };
    node.writeManifest("neverup.json", manifest("neverup", never));
    const kubelet = await node.start();
    await untilContainer(node, "gated", "to run unstarted", (seen) => isRunning(seen) && seen.started === false);
    const { status } = await untilContainer(node, "gated", "to be ready", ({ ready }) => ready);
    expect(status).toMatchObject({ started: true, restartCount: 0 });
    await untilContainer(node, "neverup", "to be restarted", (seen) => seen.restartCount > 0);
    expect(kubelet.log).toContain("Container c failed startup probe, will be restarted");
    await kubelet.stop();
  });

  test("42: postStart hooks", async () => {
    const node = testNode();
    const exec = (...command: string[]) => ({ lifecycle: { postStart: { exec: { command } } } });
    node.writeManifest("psok.json", manifest("psok", exec("sh", "-c", "echo hooked > /hook")));
    const never = { restartPolicy: "Never" };
    node.writeManifest("psfailnever.json", manifest("psfailnever", exec("sh", "-c", "exit 4"), never));
    const http = { lifecycle: { postStart: { httpGet: { port: 8080, path: "/" } } } };
    node.writeManifest("pshttp.json", manifest("pshttp", http));
    const tcp = { lifecycle: { postStart: { tcpSocket: { port: 8080 } } } };
    node.writeManifest("pstcp.json", manifest("pstcp", tcp, never));
    const kubelet = await node.start();

    await untilContainer(node, "psok", "to be ready", ({ ready }) => ready);
    const [ok] = (await node.containers("c")).filter(({ Names }) => Names[0]?.includes("psok"));
    expect((await node.docker.exec(ok!.Id, ["cat", "/hook"])).output).toBe("hooked\n");

    for (const name of ["psfailnever", "pstcp"]) {
      const { status } = await untilContainer(node, name, "to end", (seen) => !!seen.state?.terminated);
      expect(status.state?.terminated?.exitCode).toBe(137);
    }
    await untilContainer(node, "pshttp", "to be restarted", (seen) => seen.restartCount > 0);
    expect(kubelet.log).toContain("failed - error: command 'sh -c exit 4' exited with 4: , message: \"\"");
    expect(kubelet.log).toMatch(
      /Http lifecycle hook \(\/\) for Container "c" in Pod "pshttp-[^"]+" failed - error: Get "http:\/\/([\d.]+):8080\/": dial tcp \1:8080: connect: connection refused, message: ""/,
    );
    expect(kubelet.log).toContain("Cannot run handler: invalid handler: tcpSocket");
    await kubelet.stop();
  });

  test("killing and restarting the kubelet flips no pod's readiness", async () => {
    const node = testNode();
    const probes = {
      startupProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
      // Asked once when the startup probe succeeds, then not for minutes: only what was remembered says it is ready.
      readinessProbe: { exec: { command: ["true"] }, periodSeconds: 600 },
    };
    node.writeManifest("slow.json", manifest("slow", probes));
    const first = await node.start();
    const before = await untilContainer(node, "slow", "to be ready", ({ ready }) => ready);
    await first.kill();

    const second = await node.start();
    const answers: string[] = [];
    for (let reading = 0; reading < 150; reading++) {
      const [pod] = await node.pods();
      const status = pod?.status.containerStatuses?.[0];
      if (status) answers.push(`${pod.status.phase} ${status.ready} ${status.started} ${status.containerID}`);
      await Bun.sleep(10);
    }
    expect([...new Set(answers)]).toEqual([`Running true true ${before.status.containerID}`]);
    await second.stop();
  });
});
