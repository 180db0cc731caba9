import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import { shell } from "../support/manifests.ts";
import { freePorts } from "../support/test-servers.ts";

describeCluster("kubectl through a real API server", () => {
  const { plane, kubectl, node } = useCluster(async ({ node, kubectl }) => {
    await node.join();
    await kubectl.apply(
      aClusterPod("talker", shell("i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done")),
      aClusterPod("shell", { command: ["sh"], stdin: true, tty: true }),
      aClusterPod("server", shell("echo hello > /tmp/index.html; httpd -f -p 8080 -h /tmp")),
    );
    for (const name of ["talker", "shell", "server"]) await kubectl.readyPod(name);
  });

  /** Output of a command until it has printed this; it is ended then. @param input typed into it */
  async function printedUntil(line: string, isEnough: (text: string) => boolean, input = ""): Promise<string> {
    const child = kubectl.spawn(line.split(" "), "pipe");
    child.stdin.write(input);
    child.stdin.flush();
    let text = "";
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk);
      if (isEnough(text)) break;
    }
    child.kill();
    return text;
  }

  test("logs -f follows, --previous and --tail select", async () => {
    const text = await printedUntil("logs -f talker --tail=1", (seen) => seen.split("\n").length > 4);
    expect(text).toMatch(/^line \d+\nline \d+\nline \d+\n/);
    expect(await kubectl.words("logs talker --limit-bytes=6")).toBe("line 1");
  });

  test("exec has output, exit codes, input and a terminal", async () => {
    expect(await kubectl.exec("server", "sh", "-c", "echo out; echo err >&2")).toBe("out");
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
    const text = await printedUntil("attach -i shell", (seen) => /^42\r?$/m.test(seen), "echo $((40+2))\n");
    expect(text).toContain("42");
  });

  test("cp brings files in and out", async () => {
    const [source, copy] = [join(plane.directory, "source"), join(plane.directory, "copy")];
    writeFileSync(source, "contents\n".repeat(10_000));
    await kubectl.words(`cp ${source} server:/tmp/copied`);
    await kubectl.words(`cp server:/tmp/copied ${copy}`);
    expect(readFileSync(copy, "utf8")).toBe(readFileSync(source, "utf8"));
  });

  test("port-forward reaches a port of the pod, over and over", async () => {
    const [port] = freePorts(1);
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
    const image = "--image=busybox:1.35 --image-pull-policy=Never";
    const debug = `debug server ${image} -c dbg -- sh -c`.split(" ");
    await kubectl.output([...debug, "echo from the debugger; sleep 1000"]);
    await kubectl.until("the ephemeral container", async () => {
      const { status } = await kubectl.pod("server");
      return status.ephemeralContainerStatuses?.some(({ name, state }: AnyObject) => name === "dbg" && state.running);
    });
    expect(await kubectl.words("exec server -c dbg -- wget -qO- 127.0.0.1:8080")).toBe("hello");
    expect(await kubectl.words("logs server -c dbg")).toBe("from the debugger");
    const isEchoed = (seen: string) => seen.includes("echoed\n");
    const text = await printedUntil(`debug server -i ${image} -c cat -- cat`, isEchoed, "echoed\n");
    expect(text).toContain("echoed\n");
    await kubectl.readyPod("server");
  });

  test("the proxied paths of the node answer", async () => {
    const raw = (path: string) => kubectl.words(`get --raw /api/v1/nodes/${node.name}/proxy${path}`);
    expect(await raw("/healthz")).toBe("ok");
    const { node: summary, pods } = JSON.parse(await raw("/stats/summary"));
    expect(summary.nodeName).toBe(node.name);
    expect(pods.map(({ podRef }: AnyObject) => podRef.name)).toContain("server");
    expect(await raw("/metrics/resource")).toContain('pod="server"');
    expect(JSON.parse(await raw("/pods")).items.length).toBeGreaterThanOrEqual(3);
    expect(JSON.parse(await raw("/runningpods/")).items.length).toBeGreaterThanOrEqual(3);
    expect(await kubectl.words("get --raw /api/v1/namespaces/default/pods/server:8080/proxy/")).toBe("hello");
  });
});
