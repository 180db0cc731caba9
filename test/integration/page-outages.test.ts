import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { findAccessibilityProblems } from "../support/accessibility.ts";
import { launchBrowser } from "../support/browser.ts";
import { serveEmptyCluster, toKubeconfig } from "../support/cluster/empty-cluster.ts";
import { StallingProxy } from "../support/cluster/stalling-proxy.ts";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { SlowProxy } from "../support/slow-proxy.ts";
import { engineSocketPath, TestNode } from "../support/test-node.ts";

const POD = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: "app", image: "busybox:1.35", command: ["sh", "-c", "echo started; exec sleep 3600"] }],
  },
});

async function link(node: TestNode): Promise<string> {
  const { exitCode, stdout } = await node.spawn(["page", `--root-dir=${node.rootDir}`]).finished();
  expect(exitCode).toBe(0);
  return stdout.trim();
}

describeWithEngine("the page elsewhere, and while something is away", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("on a network address it is served over TLS to those with a session; without TLS there is cAdvisor's port", async () => {
    const node = testNode();
    node.writeManifest("web.json", POD("web"));
    await node.start(["--cadvisor-bind-address=0.0.0.0", "--node-ip=127.0.0.1"]);
    await node.runningContainer("app");
    const plain = `http://127.0.0.1:${node.cadvisorPort}`;
    const secure = plain.replace("http:", "https:");
    const insecureFetch = (path: string) => fetch(`${secure}${path}`, { tls: { rejectUnauthorized: false } });
    expect(await (await fetch(`${plain}/`)).text()).toContain(`${secure}/`);
    expect((await fetch(`${plain}/api/v1.3/machine`)).status).toBe(200);
    for (const path of ["/page/stream", "/page/assets/terminal.css", "/page/api/node"]) {
      expect({ path, status: (await fetch(`${plain}${path}`)).status }).toEqual({ path, status: 403 });
    }
    for (const path of ["/page/stream", "/page/api/node", "/page/api/session"]) {
      expect({ path, status: (await insecureFetch(path)).status }).toEqual({ path, status: 401 });
    }
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`${secure}/`);
    await page.getByText("This page needs a session").waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const problems = await findAccessibilityProblems(page, colorScheme === "dark");
      expect({ colorScheme, problems }).toEqual({ colorScheme, problems: [] });
    }
    const address = await link(node);
    expect(address).toStartWith(`${secure}/#token=`);
    await page.goto("about:blank");
    await page.goto(address);
    await page.getByRole("link", { name: /^web-/ }).click();
    await page.getByRole("link", { name: "Logs" }).click();
    await page.getByRole("log").getByText("started").waitFor();
    await page.getByRole("link", { name: "Shell" }).click();
    await page.locator(".xterm-rows", { hasText: "#" }).waitFor();
    const [cookie] = await context.cookies();
    expect([cookie?.secure, cookie?.httpOnly, cookie?.sameSite]).toEqual([true, true, "Strict"]);
    await context.close();
  });

  test("a browser at the root of another port is shown where the page is; other clients see no difference", async () => {
    const node = testNode();
    await node.start();
    const page = await browser.newPage();
    for (const port of [node.readOnlyPort, node.healthzPort]) {
      await page.goto(`http://127.0.0.1:${port}/`);
      const href = await page.getByRole("link").getAttribute("href");
      expect(href).toBe(`http://localhost:${node.cadvisorPort}/`);
      await page.goto(href!);
      await page.getByText("No pods run on this node").waitFor();
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("404 page not found\n");
    }
    await page.close();
  });

  test("a connection that is dead without having ended is noticed, and replaced", async () => {
    const node = testNode();
    await node.start();
    const proxy = new StallingProxy(node.cadvisorPort);
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(60_000);
      await page.clock.install();
      await page.goto(`http://127.0.0.1:${proxy.port}/`);
      await page.getByText("No pods run on this node").waitFor();
      proxy.stall();
      node.writeManifest("web.json", POD("web"));
      await node.runningContainer("app");
      // Longer than the server is ever silent.
      await page.clock.fastForward(26_000);
      const lost = page.getByText(/The kubelet does not answer. What is shown is as of .*20\d\d/);
      await lost.waitFor();
      proxy.resume();
      await page.clock.fastForward(16_000);
      await lost.waitFor({ state: "detached" });
      await page.getByRole("row", { name: /^web-.*Running/ }).waitFor();
      // The clock shows that the machine slept: less than the time after which a silent connection is dead.
      const replaced = page.waitForEvent("websocket");
      await page.clock.fastForward(10_000);
      await replaced;
      await page.close();
    } finally {
      proxy.close();
    }
  });

  test("a page says that the engine and the API server are away, and when they are back", async () => {
    const directory = mkdtempSync("/tmp/kt-proxy-");
    const path = join(directory, "docker.sock");
    let proxy = new SlowProxy(engineSocketPath(), path);
    let api = serveEmptyCluster(0);
    const port = api.port ?? 0;
    const server = `http://127.0.0.1:${port}`;
    const kubeconfig = join(directory, "node.conf");
    writeFileSync(kubeconfig, toKubeconfig(server));
    try {
      const node = new TestNode({ socketPath: path });
      node.writeManifest("web.json", POD("web"));
      await node.start([`--kubeconfig=${kubeconfig}`]);
      const page = await browser.newPage();
      page.setDefaultTimeout(120_000);
      await page.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
      const row = page.getByRole("row", { name: /^web-.*Running/ });
      await row.waitFor();
      proxy.close();
      await api.stop(true);
      await page.getByText(/The kubelet reports since .*20\d\d.*: .*engine/i).waitFor();
      const away = page.getByText(new RegExp(`The API server ${server} has not answered since .*20\\d\\d`));
      await away.waitFor();
      await page.getByText("API server away").waitFor();
      expect(await row.count()).toBe(1);
      expect(await findAccessibilityProblems(page)).toEqual([]);
      proxy = new SlowProxy(engineSocketPath(), path);
      await page.getByText(/The kubelet reports/).waitFor({ state: "detached" });
      api = serveEmptyCluster(port);
      await away.waitFor({ state: "detached" });
      await page.getByRole("link", { name: "Node", exact: true }).click();
      await page.getByText("It answers: pods come from there").waitFor();
      await page.getByRole("link", { name: "Pods", exact: true }).click();
      node.writeManifest("late.json", POD("late"));
      await page.getByRole("row", { name: /^late-.*Running/ }).waitFor();
      await page.close();
      await node.cleanUp();
    } finally {
      proxy.close();
      await api.stop(true);
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("a restart of the engine behind an open page: the pod runs again, and its log continues", async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    // Ends at once when the engine stops.
    const script = "trap 'exit 0' TERM; echo started; while :; do sleep 1 & wait $!; done";
    const web = POD("web");
    Object.assign(web.spec.containers[0]!, { image: "busybox:test", command: ["sh", "-c", script] });
    node.writeManifest("web.json", web);
    await node.start();
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(await link(node));
    await page.getByRole("row", { name: /^web-.*Running/ }).waitFor();
    await page.getByRole("link", { name: /^web-/ }).click();
    await page.getByRole("link", { name: "Logs" }).click();
    const lines = page.getByRole("log").getByText("started");
    await lines.waitFor();
    await engine.stop();
    const away = page.getByText(/The kubelet reports since .*20\d\d.*: .*engine/i);
    await away.waitFor();
    await engine.start();
    await away.waitFor({ state: "detached" });
    await lines.nth(1).waitFor();
    await page.getByRole("link", { name: "Pods", exact: true }).click();
    await page.getByRole("row", { name: /^web-.*Running 1\/1 / }).waitFor();
    await page.close();
  });
});
