import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { LABEL } from "../../src/docker/labels.ts";
import { launchBrowser, REBOUND_HOST } from "../support/browser.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { list, object, shell, sleeper } from "../support/manifests.ts";
import { findAccessibilityProblems, follow, load, logIn, openPage, row, shows } from "../support/page.ts";
import type { TestNode } from "../support/test-node.ts";

const MARKUP = "<img src=x onerror=alert(1)>";
const REVERSING = "\u202egnp.exe";
const ENVIRONMENT_VALUE = "not-for-everyone";

const FULL = sleeper(
  "full",
  {
    ...shell("echo ok > /w/index.html; exec httpd -f -p 8080 -h /w"),
    image: "busybox:1.35",
    env: [{ name: "WORD", value: ENVIRONMENT_VALUE }],
    ports: [{ containerPort: 8080 }],
    resources: { limits: { cpu: "100m", memory: "64Mi" } },
    readinessProbe: { periodSeconds: 1, httpGet: { port: 8080 } },
    volumeMounts: [{ name: "content", mountPath: "/w" }],
  },
  { volumes: [{ name: "content", emptyDir: { sizeLimit: "16Mi" } }] },
  { labels: { app: "full" } },
);
const FRONT = object("Service", "front", {
  spec: { selector: { app: "full" }, ports: [{ port: 80, targetPort: 8080 }] },
});
/** Its class is served by nothing: it starts no server. */
const INGRESS = object("Ingress", "shop", {
  apiVersion: "networking.k8s.io/v1",
  spec: {
    ingressClassName: "other",
    defaultBackend: { service: { name: "front", port: { number: 80 } } },
    rules: [{ host: "shop.example" }],
  },
});
const LONELY = object("Service", "lonely", { spec: { selector: { app: "none" }, ports: [{ port: 80 }] } });

/** Writes markup to every place where the page shows words of a pod. */
const HOSTILE = sleeper(
  "hostile",
  {
    ...shell(`echo '${MARKUP}${REVERSING}'; while :; do sleep 60; done # ${MARKUP}`),
    readinessProbe: { periodSeconds: 1, exec: shell(`echo '${MARKUP}${REVERSING}'; exit 1`) },
  },
  { terminationGracePeriodSeconds: 0 },
  { annotations: { "example.com/note": `${MARKUP}${REVERSING}` } },
);

const CRASH = sleeper("crash", shell("exit 3"));

describeWithEngine("what the page shows", () => {
  let browser: Browser;
  let node: TestNode;
  let origin: string;

  beforeAll(async () => {
    browser = await launchBrowser();
    node = testNode();
    origin = `http://127.0.0.1:${node.cadvisorPort}`;
    for (const manifest of [FULL, HOSTILE, CRASH]) node.writeManifest(`${manifest.metadata.name}.json`, manifest);
    await node.start();
  });
  afterAll(() => browser?.close());

  const READY = /^full-.* 1\/1 /;

  async function open(context: BrowserContext): Promise<Page> {
    const page = await openPage(context, node);
    await row(page, READY).waitFor();
    return page;
  }

  async function openSession(context: BrowserContext): Promise<Page> {
    const page = await logIn(context, node);
    await row(page, READY).waitFor();
    return page;
  }

  const uidOf = async (name: string) => (await node.pod(name))?.metadata.uid ?? "";

  test("the overview: the node, and a row for each pod; sorted, grouped, and with an address", async () => {
    const context = await browser.newContext();
    const page = await open(context);
    const tiles = page.getByRole("region", { name: "Node" });
    await shows(tiles, /^[\d.]+ of \d+ cores$/);
    await shows(tiles, /^load \d+\.\d\d \d+\.\d\d \d+\.\d\d$/);
    await shows(tiles, /^[\d.]+ [MG]iB of [\d.]+ GiB$/);
    const sizes = tiles.getByText(/^[\d.]+ [GT]iB of [\d.]+ [GT]iB$/);
    await sizes.last().waitFor();
    await tiles.getByText("Ready", { exact: true }).waitFor();
    await shows(tiles, /up \d+[dhms]Docker \d/);
    await shows(page.getByRole("contentinfo"), /^kubelet-ts .*Docker \d/);
    const crash = row(page, /^crash-/);
    await shows(crash, /exit code 3/);
    const cell = (title: string) => crash.locator(`[data-title="${title}"]`);
    expect(await cell("Pod").textContent()).toStartWith(`crash-${node.name}default`);
    expect(await cell("Status").textContent()).toMatch(/^(Error|CrashLoopBackOff)container app: /);
    expect(await cell("Ready").textContent()).toBe("0/1");
    expect(await cell("Age").textContent()).toMatch(/^\d+[sm]$/);
    await shows(cell("Restarts"), /^\d+ \(\d+[sm] ago\)$/);
    expect(await cell("Source").textContent()).toMatch(/^crash\.json:\d+$/);
    expect(await cell("Source").getAttribute("title")).toStartWith(`${node.manifestDir}/crash.json:`);
    const running = row(page, /^full-/);
    await shows(running.locator('[data-title="Memory"]'), /^[\d.]+ [KM]iB$/);
    await running.locator('[data-title="CPU cores"] svg.spark').waitFor();

    const names = async () =>
      (await page.locator('table.pods [data-title="Pod"] a').allTextContents()).map((name) => name.split("-")[0]);
    const sortBy = (title: string) => page.locator("th button.sort", { hasText: title }).click();
    expect(await names()).toEqual(["crash", "full", "hostile"]);
    await sortBy("Pod");
    await node.until("the order", async () => (await names()).join() === "hostile,full,crash");
    await sortBy("Restarts");
    await node.until("the order", async () => (await names())[0] === "crash");
    await page.getByLabel("Group by namespace").check();
    await page.getByRole("rowheader", { name: "default 3" }).waitFor();
    await page.getByLabel("Not ready").check();
    await shows(page, "2 of 3 pods");
    const wanted = "/#/?show=not-ready&group=namespace&sort=-restarts";
    await node.until("the address", () => page.url().endsWith(wanted));
    const address = page.url();
    await page.goto("about:blank");
    await load(page, address);
    await shows(page, "2 of 3 pods");
    await context.close();
  });

  test("a pod: containers, limits, probes, volumes, conditions, charts; one stream for all views", async () => {
    const context = await browser.newContext();
    const asked: string[] = [];
    context.on("page", (page) => page.on("websocket", (socket) => asked.push(new URL(socket.url()).pathname)));
    const page = await open(context);
    await follow(page, /^full-/);
    const main = page.getByRole("main");
    for (const text of [
      /^busybox:1\.35$/,
      /^sha256:[0-9a-f]{64}$/,
      /^8080\/TCP$/,
      /^CPU [\d.]+m? of 100m cores \(\d+ %\)$/,
      /^Memory [\d.]+ [KM]iB of 64\.0 MiB \(\d+ %\)$/,
      /^readiness probe http-get :8080\//,
      /^success \d+s ago$/,
      /^content \(emptyDir\): .* of 16\.0 MiB \(0 %\)$/,
      /^Burstable|Guaranteed$/,
    ]) {
      await shows(main, text);
    }
    const answers = page.getByRole("list", { name: "Last answers of the readiness probe, oldest first" });
    await answers.locator(".success").nth(2).waitFor();
    await row(page, /^ContainersReady True/).waitFor();
    for (const title of ["CPU cores", "Memory", "Network", "Disk"]) {
      await page.getByRole("figure").filter({ hasText: title }).locator("canvas").waitFor();
    }
    await page.getByRole("figure").filter({ hasText: "Memory" }).getByText("limit 64.0 MiB").waitFor();
    for (const range of ["1h", "24h", "10m"]) {
      const answer = page.waitForResponse((response) => response.url().endsWith(`/history?range=${range}`));
      await page.getByRole("button", { name: range }).click();
      expect((await answer).status()).toBe(200);
    }
    await follow(page, "Events");
    await page.getByRole("cell", { name: "Started", exact: true }).waitFor();
    await follow(page, "Node");
    for (const title of ["Conditions", "File systems", "Control groups by memory", "Images", "Machine", "Events"]) {
      await page.getByRole("heading", { name: title }).waitFor();
    }
    await shows(page, /^\/.*: [\d.]+ [MGT]iB of [\d.]+ [MGT]iB \(\d+ %\), root directory/);
    const images = page.locator("section", { has: page.getByRole("heading", { name: "Images" }) });
    const rest = images.getByRole("button", { name: /^Show all/ });
    if ((await rest.count()) > 0) await rest.click();
    await images.getByRole("row", { name: /^busybox:1\.35 .*in use .*[\d.]+ MiB$/ }).waitFor();
    await row(page, /^node .*[\d.]+ [MG]iB/).waitFor();
    await follow(page, "Pods");
    await row(page, /^full-/).waitFor();
    await follow(page, /^crash-/);
    await shows(main.locator("dl"), /^Error \(exit code 3\)$/);
    expect(asked.filter((path) => path === "/page/stream").length).toBe(1);
    await context.close();
  });

  test("Services and Ingresses: where they lead, and which ones lead to a pod", async () => {
    const own = testNode();
    own.writeManifest("front.yaml", list(FULL, FRONT, LONELY, INGRESS));
    await own.start();
    const context = await browser.newContext();
    const page = await openPage(context, own);
    await row(page, /^lonely.*ClusterIP \d[\d.]+ 80\/TCP 0\/0 ready .*selector.* -$/).waitFor();
    await row(
      page,
      /^shop default, Ingress shop\.example nothing serves it .*its class has no server .* full-/,
    ).waitFor();
    const front = row(page, /^front.*ClusterIP \d[\d.]+ 80\/TCP 1\/1 ready full-/);
    await front.waitFor();
    expect(await findAccessibilityProblems(page)).toEqual([]);
    await front.getByRole("link", { name: /^full-/ }).click();
    await shows(page.getByRole("main"), /^front \(ClusterIP, \d[\d.]+, 80\/TCP\)$/);
    await context.close();
  });

  test("a container that is not ours: by name with CPU and memory, without its environment and labels, untouched", async () => {
    const name = `${node.name}-neighbor`;
    const { Id } = await node.docker.createContainer(name, {
      Image: "busybox:1.35",
      Cmd: ["sleep", "3600"],
      Env: [`WORD=${ENVIRONMENT_VALUE}`],
      // The label of the node removes it if the test fails; without the label of our root directory it is not ours.
      Labels: { [LABEL.node]: node.bareName, word: ENVIRONMENT_VALUE },
      HostConfig: { Memory: 33_554_432 },
    });
    await node.docker.startContainer(Id);
    const before = await node.docker.inspectContainerRaw(Id);
    const context = await browser.newContext();
    const page = await open(context);
    await follow(page, "Node");
    const section = page.locator("section", {
      has: page.getByRole("heading", { name: "Other containers of the engine" }),
    });
    const all = section.getByRole("button", { name: /^Show all/ });
    const shown = section.getByRole("row", {
      name: new RegExp(`^${name} busybox:1\\.35 \\d+[sm] [\\d.]+m? [\\d.]+ [KM]iB$`),
    });
    await node.until("the container", async () => {
      if ((await all.count()) > 0) await all.click();
      return (await shown.count()) === 1;
    });
    expect(await findAccessibilityProblems(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 700 });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(360);
    await context.close();

    const line = new RegExp(
      `^container_memory_working_set_bytes\\{container="",id="[^"]*${Id}[^"]*",image="busybox:1\\.35",name="${name}",namespace="",pod=""\\} \\d+`,
      "m",
    );
    await node.until("its metrics", async () => line.test(await node.read("/metrics/cadvisor")));
    expect(await node.read("/metrics/resource")).not.toContain('container=""');
    const answer = await fetch(`${origin}/api/v1.3/docker/${name}`);
    const text = await answer.text();
    expect(Object.values(JSON.parse(text))).toMatchObject([{ id: Id, aliases: [name, Id], spec: { labels: {} } }]);
    expect(text).not.toContain(ENVIRONMENT_VALUE);
    expect(await node.docker.inspectContainerRaw(Id)).toEqual(before);
    await node.docker.removeContainer(Id, { force: true });
  });

  test("values of environment variables are for sessions", async () => {
    const context = await browser.newContext();
    const page = await open(context);
    const path = `/page/api/pods/${await uidOf("full")}`;
    const shown = () => page.evaluate<string>(`fetch("${path}").then((answer) => answer.text())`);
    const without = await shown();
    expect([without.includes("WORD"), without.includes(ENVIRONMENT_VALUE)]).toEqual([true, false]);
    await follow(page, /^full-/);
    await follow(page, "Manifest");
    await shows(page, "The pod as the kubelet runs it");
    expect(await page.getByRole("main").textContent()).not.toContain(ENVIRONMENT_VALUE);
    await page.close();
    const session = await openSession(context);
    await session.getByRole("link", { name: /^full-/ }).click();
    await follow(session, "Manifest");
    await shows(session, ENVIRONMENT_VALUE);
    await context.close();
  });

  test("what a hostile pod writes is text in every view", async () => {
    const context = await browser.newContext();
    const page = await openSession(context);
    const main = page.getByRole("main");
    const expectText = async () => {
      await shows(main, MARKUP);
      expect(await page.locator("img").count()).toBe(0);
    };
    await row(page, /^hostile-.* 0\/1 /).waitFor();
    await follow(page, /^hostile-/);
    const note = `example.com/note=${MARKUP}`;
    await page.getByRole("listitem").filter({ hasText: note }).waitFor();
    await expectText();
    for (const tab of ["Logs", "Processes", "Events", "Manifest"]) {
      await follow(page, tab);
      await expectText();
    }
    await follow(page, "Logs");
    const line = page.getByRole("log").locator(".line").first();
    expect(await line.textContent()).toBe(`${MARKUP}gnp.exe`);
    await page.getByLabel("Times").check();
    await shows(page.getByRole("log"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} </);
    const whiteSpace = () => page.evaluate<string>('getComputedStyle(document.querySelector(".log .line")).whiteSpace');
    expect(await whiteSpace()).toBe("pre-wrap");
    await page.getByLabel("Wrap").uncheck();
    await node.until("a line without wrap", async () => (await whiteSpace()) === "pre");
    await context.close();
  });

  test("a foreign site in the same browser can neither read nor act, nor open a shell, nor show the page", async () => {
    const context = await browser.newContext();
    await openSession(context);
    const site = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response("<!doctype html><title>a foreign site</title>", { headers: { "Content-Type": "text/html" } }),
    });
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      // Cookies of a host are sent to all of its ports: only the origin tells the two apart.
      await page.goto(`http://127.0.0.1:${site.port}/`);
      const uid = await uidOf("full");
      const pod = `${origin}/page/api/pods/${uid}`;
      // A request that a browser sends without asking the server first.
      const post = (path: string, body = "{}") =>
        page.evaluate<string>(
          `fetch(${JSON.stringify(path)}, { method: "POST", mode: "no-cors", credentials: "include", body: ${JSON.stringify(body)} })
            .then(() => "answered", () => "blocked")`,
        );
      await post(`${pod}/restart`);
      await post(
        `${origin}/page/api/apply`,
        JSON.stringify({ manifest: JSON.stringify(CRASH).replace("crash", "foreign") }),
      );
      await post(`${pod}/delete`);
      const read = (path: string) =>
        page.evaluate<string>(
          `fetch("${path}", { credentials: "include" }).then((answer) => answer.text(), (error) => error.name)`,
        );
      for (const path of [`${pod}/logs?container=app`, pod, `${origin}/`]) {
        expect({ path, read: await read(path) }).toEqual({ path, read: "TypeError" });
      }
      const shell = `${pod.replace("http:", "ws:")}/shell?container=app`;
      const opened = await page.evaluate<string>(`new Promise((resolve) => {
        const socket = new WebSocket("${shell}", "v5.channel.k8s.io");
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("refused");
      })`);
      expect(opened).toBe("refused");
      await page.evaluate(
        `document.body.append(Object.assign(document.createElement("iframe"), { src: "${origin}/" }))`,
      );
      await node.until("the frame", async () => page.frames().length === 2);
      await page.waitForLoadState("networkidle");
      expect(await page.frameLocator("iframe").locator(".brand").count()).toBe(0);
      const rebound = await page.goto(`http://${REBOUND_HOST}:${node.cadvisorPort}/`);
      expect(rebound?.status()).toBe(421);
      const pods = await node.pods();
      expect(pods.map(({ metadata }) => metadata.name?.split("-")[0]).toSorted()).toEqual(["crash", "full", "hostile"]);
      expect(pods.find(({ metadata }) => metadata.uid === uid)?.status.containerStatuses?.[0]?.restartCount).toBe(0);
    } finally {
      await site.stop(true);
      await context.close();
    }
  });
});
