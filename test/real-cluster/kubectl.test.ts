import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import type { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { freePorts } from "../support/test-node.ts";

describeCluster("kubectl through a real API server", () => {
  let plane: ControlPlane;
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  useCluster(async (cluster) => {
    ({ plane, kubectl, node } = cluster);
    await node.join();
    const loop = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done";
    await kubectl.apply(
      aClusterPod("talker", { command: ["sh", "-c", loop] }),
      aClusterPod("shell", { command: ["sh"], stdin: true, tty: true }),
      aClusterPod("server", { command: ["sh", "-c", "echo hello > /tmp/index.html; httpd -f -p 8080 -h /tmp"] }),
    );
    for (const name of ["talker", "shell", "server"]) await kubectl.readyPod(name);
  });

  test("logs -f follows, --previous and --tail select", async () => {
    const following = kubectl.spawn(["logs", "-f", "talker", "--tail=1"]);
    let text = "";
    for await (const chunk of following.stdout) {
      text += new TextDecoder().decode(chunk);
      if (text.split("\n").length > 4) break;
    }
    following.kill();
    expect(text).toMatch(/^line \d+\nline \d+\nline \d+\n/);
    expect(await kubectl.output(["logs", "talker", "--limit-bytes=6"])).toBe("line 1");
  });

  test("exec has output, exit codes, input and a terminal", async () => {
    expect(await kubectl.output(["exec", "server", "--", "sh", "-c", "echo out; echo err >&2"])).toBe("out");
    expect((await kubectl.run(["exec", "server", "--", "sh", "-c", "exit 7"])).code).toBe(7);
    expect(await kubectl.output(["exec", "-i", "server", "--", "sort"], "b\na\n")).toBe("a\nb");
    const large = "x".repeat(3_000_000);
    expect(await kubectl.output(["exec", "-i", "server", "--", "wc", "-c"], large)).toBe("3000000");
  });

  test("a client in a browser reaches exec through the API server, which passes its Origin on", async () => {
    const query = "container=app&command=echo&command=hello&stdout=1";
    const { cert, key } = plane.administrator;
    const socket = new WebSocket(
      `${plane.url.replace("https", "wss")}/api/v1/namespaces/default/pods/server/exec?${query}`,
      {
        protocols: ["v4.channel.k8s.io"],
        headers: { Origin: "https://dashboard.example" },
        tls: { ca: plane.authority.cert, cert, key },
      },
    );
    socket.binaryType = "arraybuffer";
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    let text = "";
    socket.onmessage = ({ data }) => {
      const [channel, ...bytes] = new Uint8Array(data as ArrayBuffer);
      if (channel === 1) text += Buffer.from(bytes).toString();
    };
    socket.onclose = () => resolve(text);
    socket.onerror = () => reject(new Error("the API server refused the WebSocket"));
    expect(await promise).toBe("hello\n");
  });

  test("attach speaks to the container's own process", async () => {
    const attached = kubectl.spawnWithInput(["attach", "-i", "shell"]);
    attached.stdin.write("echo $((40+2))\n");
    attached.stdin.flush();
    let text = "";
    for await (const chunk of attached.stdout) {
      text += new TextDecoder().decode(chunk);
      if (/^42\r?$/m.test(text)) break;
    }
    attached.kill();
    expect(text).toContain("42");
  });

  test("cp brings files in and out", async () => {
    const [source, copy] = [join(plane.directory, "source"), join(plane.directory, "copy")];
    writeFileSync(source, "contents\n".repeat(10_000));
    await kubectl.output(["cp", source, "server:/tmp/copied"]);
    await kubectl.output(["cp", "server:/tmp/copied", copy]);
    expect(readFileSync(copy, "utf8")).toBe(readFileSync(source, "utf8"));
  });

  test("port-forward reaches a port of the pod, over and over", async () => {
    const [port] = freePorts(1) as [number];
    const forwarding = kubectl.spawn(["port-forward", "server", `${port}:8080`]);
    for (let count = 0; count < 5; count++) {
      const text = await kubectl.until("the page", async () =>
        (await fetch(`http://127.0.0.1:${port}/`, { keepalive: false })).text(),
      );
      expect(text).toBe("hello\n");
    }
    forwarding.kill();
  });

  test("debug adds ephemeral containers, which have logs, exec and attach", async () => {
    await kubectl.output([
      "debug",
      "server",
      "--image=busybox:1.35",
      "--image-pull-policy=Never",
      "-c",
      "dbg",
      "--",
      "sh",
      "-c",
      "echo from the debugger; sleep 1000",
    ]);
    await kubectl.until("the ephemeral container", async () => {
      const { status } = await kubectl.json(["get", "pod", "server"]);
      return status.ephemeralContainerStatuses?.some(
        ({ name, state }: { name: string; state: { running?: object } }) => name === "dbg" && state.running,
      );
    });
    expect(await kubectl.output(["exec", "server", "-c", "dbg", "--", "wget", "-qO-", "127.0.0.1:8080"])).toBe("hello");
    expect(await kubectl.output(["logs", "server", "-c", "dbg"])).toBe("from the debugger");
    const image = ["--image=busybox:1.35", "--image-pull-policy=Never"];
    const attached = kubectl.spawnWithInput(["debug", "server", "-i", ...image, "-c", "cat", "--", "cat"]);
    attached.stdin.write("echoed\n");
    attached.stdin.flush();
    let text = "";
    for await (const chunk of attached.stdout) {
      text += new TextDecoder().decode(chunk);
      if (text.includes("echoed\n")) break;
    }
    attached.kill();
    expect(text).toContain("echoed\n");
    await kubectl.readyPod("server");
  });

  test("the proxied paths of the node answer", async () => {
    const raw = (path: string) => kubectl.output(["get", "--raw", `/api/v1/nodes/${node.name}/proxy${path}`]);
    expect(await raw("/healthz")).toBe("ok");
    const { node: summary, pods } = JSON.parse(await raw("/stats/summary"));
    expect(summary.nodeName).toBe(node.name);
    expect(pods.map(({ podRef }: { podRef: { name: string } }) => podRef.name)).toContain("server");
    expect(await raw("/metrics/resource")).toContain('pod="server"');
    expect(JSON.parse(await raw("/pods")).items.length).toBeGreaterThanOrEqual(3);
    expect(JSON.parse(await raw("/runningpods/")).items.length).toBeGreaterThanOrEqual(3);
    expect(await kubectl.output(["get", "--raw", "/api/v1/namespaces/default/pods/server:8080/proxy/"])).toBe("hello");
  });
});
