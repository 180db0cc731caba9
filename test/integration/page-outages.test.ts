import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { serveEmptyCluster, toKubeconfig } from "../support/cluster/empty-cluster.ts";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import {
  findAccessibilityProblems,
  follow,
  load,
  logIn,
  openPage,
  row,
  sessionLink,
  shows,
  untilGone,
} from "../support/page.ts";
import { TestProxy } from "../support/test-proxy.ts";

const POD = (name: string) => sleeper(name, shell(`echo started; ${STOPPABLE}`));

describeWithEngine("the page on other addresses, and while the engine or the API server is away", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.concurrent("on a network address it is served over TLS to those with a session; without TLS there is cAdvisor's port", async () => {
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
    const page = await openPage(context, node, `${secure}/`);
    await shows(page, "This page needs a session");
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const problems = await findAccessibilityProblems(page, colorScheme === "dark");
      expect({ colorScheme, problems }).toEqual({ colorScheme, problems: [] });
    }
    const address = await sessionLink(node);
    expect(address).toStartWith(`${secure}/#token=`);
    await page.goto("about:blank");
    await load(page, address);
    await follow(page, /^web-/);
    await follow(page, "Logs");
    await page.getByRole("log").getByText("started").waitFor();
    await follow(page, "Shell");
    const newShell = page.getByRole("button", { name: "New shell" });
    await node.until("the prompt of a shell", async () => {
      // Chromium closes all connections when a network interface of the machine comes or goes.
      if (await newShell.isVisible()) await newShell.click();
      return await page.locator(".xterm-rows", { hasText: "#" }).isVisible();
    });
    const [cookie] = await context.cookies();
    expect([cookie?.secure, cookie?.httpOnly, cookie?.sameSite]).toEqual([true, true, "Strict"]);
    await context.close();
  });

  test.concurrent("a page whose script, or a part of it, was lost is loaded again", async () => {
    const node = testNode();
    node.writeManifest("web.json", POD("web"));
    await node.start();
    await node.runningContainer("app");
    const context = await browser.newContext();
    let losses = 2;
    await context.route("**/page/assets/*.js", (route) => (losses-- > 0 ? route.abort() : route.continue()));
    const page = await context.newPage();
    await page.goto(await sessionLink(node));
    await page.locator("#app main").waitFor({ timeout: 30_000 });
    expect(losses).toBeLessThan(0);
    await follow(page, /^web-/);
    losses = 1;
    await follow(page, "Shell");
    await page.locator(".xterm-rows", { hasText: "#" }).waitFor({ timeout: 30_000 });
    expect(losses).toBeLessThan(0);
    await context.close();
  });

  test.concurrent("a browser at the root of another port is shown where the page is", async () => {
    const node = testNode();
    await node.start();
    for (const port of [node.readOnlyPort, node.healthzPort]) {
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { Accept: "text/html" } });
      expect(await response.text()).toContain(`href="http://localhost:${node.cadvisorPort}/"`);
    }
  });

  test.concurrent("a connection that is dead without having ended is noticed, and replaced", async () => {
    const node = testNode();
    await node.start();
    const proxy = new TestProxy(node.cadvisorPort);
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(60_000);
      await page.clock.install();
      await page.goto(`http://127.0.0.1:${proxy.address}/`);
      await shows(page, "No pods run on this node");
      proxy.stall();
      node.writeManifest("web.json", POD("web"));
      await node.runningContainer("app");
      // Longer than the server is ever silent.
      await page.clock.fastForward(26_000);
      const lost = page.getByText(/The kubelet does not answer. What is shown is as of .*20\d\d/);
      await lost.waitFor();
      proxy.resume();
      await page.clock.fastForward(16_000);
      await untilGone(lost);
      await row(page, /^web-.*Running/).waitFor();
      // The clock shows that the machine slept: less than the time after which a silent connection is dead.
      const replaced = page.waitForEvent("websocket");
      await page.clock.fastForward(10_000);
      await replaced;
      await page.close();
    } finally {
      proxy.close();
    }
  });

  test.concurrent("engine and API server are away behind an open page, and come back: both are shown, and a log continues", async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    let api = serveEmptyCluster(0);
    const port = api.port ?? 0;
    const server = `http://127.0.0.1:${port}`;
    const node = testNode({ socketPath: engine.socketPath });
    const kubeconfig = join(node.directory, "node.conf");
    writeFileSync(kubeconfig, toKubeconfig(server));
    try {
      node.writeManifest("web.json", POD("web"));
      // A page is told the state of the node every ten seconds.
      await node.start([`--kubeconfig=${kubeconfig}`, "--node-status-update-frequency=1s"]);
      const page = await logIn(browser, node);
      const overview = await openPage(browser, node);
      for (const tab of [page, overview]) await row(tab, /^web-.*Running/).waitFor();
      await follow(page, /^web-/);
      await follow(page, "Logs");
      const lines = page.getByRole("log").getByText("started");
      await lines.waitFor();
      await Promise.all([engine.stop(), api.stop(true)]);
      const engineAway = page.getByText(/The kubelet reports since .*20\d\d.*: .*engine/i);
      const apiAway = page.getByText(new RegExp(`The API server ${server} has not answered since .*20\\d\\d`));
      await engineAway.waitFor();
      await apiAway.waitFor();
      expect(await findAccessibilityProblems(page)).toEqual([]);
      await shows(overview, "API server away");
      expect(await row(overview, /^web-/).count()).toBe(1);
      api = serveEmptyCluster(port);
      await engine.start();
      await untilGone(engineAway);
      await untilGone(apiAway);
      await lines.nth(1).waitFor();
      await follow(page, "Node");
      await shows(page, "It answers: pods come from there");
      await follow(page, "Pods");
      node.writeManifest("late.json", POD("late"));
      for (const name of [/^web-.*Running .*1\/1 /, /^late-.*Running/]) await row(page, name).waitFor();
      for (const tab of [page, overview]) await tab.close();
    } finally {
      await api.stop(true);
    }
  });
});
