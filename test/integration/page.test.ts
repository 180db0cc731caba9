import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import {
  createLoginToken,
  PageSessions,
  readPageSecret,
  SESSION_LIFETIME_MS,
} from "../../src/server/page/page-session.ts";
import { launchBrowser } from "../support/browser.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi } from "../support/local-api.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import {
  findAccessibilityProblems,
  follow,
  load,
  openPage,
  row,
  sessionLink,
  shows,
  untilGone,
} from "../support/page.ts";
import type { TestNode } from "../support/test-node.ts";

const pod = (name: string, script = STOPPABLE) => sleeper(name, shell(script), { terminationGracePeriodSeconds: 0 });

/** With a misspelt field. */
const wrong = (name: string) => JSON.stringify(pod(name)).replace("containers", "containerz");

const HOSTILE = String.raw`printf "<img src=x onerror=alert(1)> \033[31mred\033[0m \033]0;title\007\342\200\256reversed\n"`;

/** Adds an ephemeral container, as `kubectl debug` does. */
async function debug(node: TestNode, pod: string): Promise<void> {
  const path = `/api/v1/namespaces/default/pods/${pod}/ephemeralcontainers`;
  const debugger_ = { name: "debugger", image: "busybox:1.35", ...shell("echo from a debugger; sleep 3600") };
  const patch = { spec: { ephemeralContainers: [debugger_] } };
  const { status } = await askApi(node, "PATCH", path, patch, "application/strategic-merge-patch+json");
  expect(status).toBe(200);
}

/** The cookie of a session that expires after this time. */
function shortSession(node: TestNode, lifetimeMs: number) {
  const secret = readPageSecret(node.rootDir);
  const then = Date.now() - SESSION_LIFETIME_MS + lifetimeMs;
  const sessions = new PageSessions(secret, () => then);
  const value = sessions.logIn(createLoginToken(secret, then))!;
  return { name: sessions.cookieName, value, httpOnly: true, sameSite: "Strict" as const };
}

describeWithEngine("the page", () => {
  let browser: Browser;
  let node: TestNode;
  let origin: string;
  const foreign: string[] = [];
  const errors: string[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
    node = testNode();
    origin = `http://127.0.0.1:${node.cadvisorPort}`;
    node.writeManifest(
      "web.yaml",
      pod("web", `i=0; ${HOSTILE}; while true; do i=$((i+1)); echo "line $i"; sleep 1; done`),
    );
    node.writeManifest(
      "crash.yaml",
      pod("crash", `${HOSTILE} > /dev/termination-log; echo cannot connect to db; exit 3`),
    );
    node.writeManifest("bad<img src=x onerror=alert(2)>.yaml", wrong("bad"));
    await node.start();
    await node.runningContainer("app");
  });
  afterAll(() => browser?.close());

  async function open(context: BrowserContext, address = `${origin}/`): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) foreign.push(request.url());
    });
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("dialog", (dialog) => {
      errors.push(`a script of a pod ran: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await load(page, address);
    return page;
  }

  test("shows pods, why they are not ready, refused manifests; a pod comes and goes in an open page", async () => {
    const context = await browser.newContext();
    const page = await open(context);
    await row(page, /web-.*Running/).waitFor();
    const crash = row(page, /^crash-/);
    await shows(crash, /exit code 3/);
    const refused = page.getByRole("region", { name: "Refused manifests" });
    expect(await refused.textContent()).toMatch(/bad<img src=x onerror=alert\(2\)>\.yaml:\d+:\d+ .*containerz/);
    await crash.getByRole("link").click();
    const reason = await page.locator(".explanation .note", { hasText: "ended at" }).textContent();
    expect(reason).toContain("(Error): <img src=x onerror=alert(1)> red reversed");
    expect(await page.locator("main img").count()).toBe(0);
    await follow(page, "Pods");
    node.writeManifest("late.yaml", pod("late"));
    await row(page, /^late-.*Running/).waitFor();
    node.removeManifest("late.yaml");
    await untilGone(row(page, /^late-/));
    // A row that takes another place keeps the focus.
    const link = page.getByRole("link", { name: /^web-/ });
    await link.focus();
    for (const order of ["descending", "ascending"]) {
      await page.evaluate("document.querySelector('button.sort').click()");
      await page.locator(`th[aria-sort=${order}]`).waitFor();
      expect(await link.evaluate((element) => element.matches(":focus"))).toBe(true);
    }
    await page.getByLabel("Filter pods").fill("exit code");
    await shows(page, "1 of 2 pods");
    await context.close();
  });

  test("without a session there are neither logs nor a shell; a link works once", async () => {
    const context = await browser.newContext();
    const page = await open(context);
    await follow(page, /^web-/);
    await page.getByRole("link", { name: "Manifest" }).waitFor();
    expect(await page.getByRole("link", { name: "Logs" }).count()).toBe(0);
    const address = await sessionLink(node);
    await page.goto("about:blank");
    await load(page, address);
    await row(page, /^web-/).waitFor();
    expect(page.url()).not.toContain("token");
    const [cookie] = await context.cookies();
    expect([cookie?.httpOnly, cookie?.sameSite]).toEqual([true, "Strict"]);
    const second = await browser.newContext();
    for (const wrong of [address, `${origin}/#token=1.2.3`, `${address}x`]) {
      const late = await open(second, wrong);
      await shows(late, /expired or was used/);
      expect(late.url()).not.toContain("token");
      expect(await second.cookies()).toEqual([]);
      await late.close();
    }
    await Promise.all([context.close(), second.close()]);
  });

  test("logs are live, searchable text; a shell runs commands", async () => {
    const context = await browser.newContext();
    const page = await open(context, await sessionLink(node));
    await follow(page, /^web-/);
    await follow(page, "Logs");
    const log = page.getByRole("log");
    await shows(log, /^line \d+$/);
    expect(await log.textContent()).toContain("<img src=x onerror=alert(1)> red reversed");
    expect(await log.locator("img").count()).toBe(0);
    const seen = await log.locator(".line").count();
    await log.locator(".line").nth(seen).waitFor();
    await page.getByLabel("Search in the log").fill("ONERROR");
    await shows(page, /^1 match in \d+ lines/);
    expect(await log.locator("mark").allTextContents()).toEqual(["onerror"]);
    await page.getByLabel("Search in the log").press("Enter");
    await shows(page, /^match 1 of 1 in/);
    await page.getByLabel("Only matches").uncheck();
    await log.locator(".line.current", { hasText: "onerror" }).waitFor();
    await page.getByRole("button", { name: /^↓ To the end/ }).click();
    await follow(page, "Shell");
    await page.locator(".xterm-screen").waitFor();
    await page.locator(".xterm-rows", { hasText: "#" }).waitFor();
    await page.keyboard.type("echo $((20+3))-seen\n");
    await page.locator(".xterm-rows", { hasText: "23-seen" }).waitFor();
    await follow(page, "Logs");
    await log.waitFor();
    await follow(page, "Shell");
    await page.locator(".xterm-rows", { hasText: "23-seen" }).waitFor();
    await page.locator(".xterm textarea:focus").waitFor({ state: "attached" });
    await page.keyboard.press("Shift+Tab");
    expect(await page.evaluate<string>("document.activeElement.ariaLabel")).toBe("Container");
    await page.locator(".xterm-screen").click();
    await page.keyboard.type("exit 4\n");
    await shows(page, "The shell ended with exit code 4.");
    await page.keyboard.press("Enter");
    await untilGone(page.getByText("The shell ended with exit code 4."));
    await page.locator(".xterm-rows", { hasText: "#" }).waitFor();
    await context.close();
  });

  test("an open page tells that its session has expired, and loses its log, shell and actions", async () => {
    const context = await browser.newContext();
    const openBoth = async (lifetimeMs: number) => {
      await context.addCookies([{ ...shortSession(node, lifetimeMs), url: origin }]);
      const page = await open(context);
      await follow(page, /^web-/);
      const address = page.url();
      await follow(page, "Logs");
      const line = page.getByRole("log").getByText(/^line \d+$/);
      await line.last().waitFor();
      const shell = await open(context, `${address}/shell`);
      await shell.locator(".xterm-rows", { hasText: "#" }).waitFor();
      return [page, shell] as const;
    };
    // A busy machine needs a longer session to get that far.
    const started = performance.now();
    for (const tab of await openBoth(SESSION_LIFETIME_MS)) await tab.close();
    const [page, second] = await openBoth(Math.max(5_000, Math.ceil(3 * (performance.now() - started))));
    for (const tab of [page, second]) {
      await shows(tab, "Your session has ended");
      await shows(tab, "This part needs a session");
      expect(await tab.getByRole("button", { name: "Delete" }).count()).toBe(0);
    }
    await follow(page, "Pods");
    await row(page, /^web-.*Running/).waitFor();
    await context.close();
  });

  test("a manifest is checked, applied and deleted; a pod of a file names its file", async () => {
    const context = await browser.newContext();
    const page = await open(context, await sessionLink(node));
    await follow(page, "Apply");
    const box = page.getByLabel("Manifest");
    await box.fill(wrong("posted"));
    await page.getByRole("button", { name: "Check" }).click();
    await page
      .getByText(/containerz/)
      .last()
      .waitFor();
    await box.fill(JSON.stringify(pod("posted", "echo hello; sleep 3600")));
    await page.getByRole("button", { name: "Apply" }).click();
    await shows(page.getByRole("dialog"), /pod "default\/posted": the pod starts/);
    await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
    await page.locator("pre.banner", { hasText: "pod/posted created" }).waitFor();
    await follow(page, "Pods");
    await row(page, /^posted.*Running.*submitted$/).waitFor();
    await follow(page, "posted");
    await debug(node, "posted");
    const debugger_ = page.getByRole("heading", { name: /^debugger ephemeral container/ });
    await debugger_.waitFor();
    await follow(page, "Logs");
    await page.getByLabel("Container").selectOption("All containers");
    await page.getByRole("log").getByText("from a debugger").waitFor();
    const started = page.waitForEvent("download");
    await follow(page, "Download");
    const download = await started;
    expect(download.suggestedFilename()).toBe("posted.log");
    const saved = readFileSync(await download.path(), "utf8");
    expect(saved.trim().split("\n").toSorted()).toEqual(["app\thello", "debugger\tfrom a debugger"]);
    await follow(page, "Manifest");
    await page.getByRole("button", { name: "Try an edit" }).click();
    const edit = page.getByLabel("Edited manifest");
    await edit.fill((await edit.inputValue()).replace("3600", "3601"));
    await page.getByRole("button", { name: "What would restart?" }).click();
    await shows(page, "=> container app restarts");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await follow(page, "Pods");
    await untilGone(row(page, /^posted/));
    await follow(page, /^web-/);
    await page.getByRole("button", { name: "Delete" }).click();
    await shows(page.getByRole("dialog"), /comes from .*web\.yaml/);
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Restart" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
    await shows(page, /restarted$/);
    await context.close();
  });

  test("more windows than a browser has connections for requests are all updated, and show logs", async () => {
    const context = await browser.newContext();
    const first = await open(context, await sessionLink(node));
    await first.getByRole("link", { name: /^web-/ }).click();
    await first.getByRole("link", { name: "Logs" }).click();
    const pages = [first, ...(await Promise.all(Array.from({ length: 7 }, () => open(context, first.url()))))];
    await Promise.all(pages.map((page) => shows(page.getByRole("log"), /^line \d+$/)));
    node.writeManifest("eighth.yaml", pod("eighth"));
    await Promise.all(pages.map((page) => page.getByRole("link", { name: "Pods", exact: true }).click()));
    await Promise.all(pages.map((page) => row(page, /^eighth-/).waitFor()));
    node.removeManifest("eighth.yaml");
    await context.close();
  });

  test("after an upgrade the page is loaded again, or says that there is another one", async () => {
    const context = await browser.newContext();
    const page = await open(context, await sessionLink(node));
    await row(page, /^web-/).waitFor();
    await follow(page, "Apply");
    await page.getByLabel("Manifest").fill("typed");
    await context.routeWebSocket("**/page/stream", (socket) => socket.send("build main-other.js"));
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
    await shows(page, "which has another page");
    expect(await page.getByLabel("Manifest").inputValue()).toBe("typed");
    const loaded = page.waitForEvent("load");
    await follow(page, "Pods");
    await loaded;
    await page.getByRole("button", { name: "Load it" }).waitFor();
    await context.close();
  });

  test("a page survives a restart of the kubelet, and its session too", async () => {
    const other = testNode();
    other.writeManifest("web.yaml", pod("web"));
    const first = await other.start();
    await other.runningContainer("app");
    const context = await browser.newContext();
    const page = await openPage(context, other, await sessionLink(other));
    await row(page, /^web-.*Running/).waitFor();
    await first.stop();
    await shows(page, "The kubelet does not answer");
    expect(await findAccessibilityProblems(page)).toEqual([]);
    await other.start();
    await untilGone(page.getByText("The kubelet does not answer"));
    await follow(page, /^web-/);
    await page.getByRole("link", { name: "Logs" }).waitFor();
    await context.close();
  });

  test("every view is accessible on a desktop and on a phone, light and dark, and no wider than the screen", async () => {
    const context = await browser.newContext({ reducedMotion: "reduce" });
    const page = await open(context, await sessionLink(node));
    const check = async (view: string, shown: Locator) => {
      await shown.first().waitFor();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const problems = await findAccessibilityProblems(page, colorScheme === "dark");
        expect({ view, colorScheme, problems }).toEqual({ view, colorScheme, problems: [] });
      }
    };
    const web = row(page, /^web-/);
    await check("overview", web);
    await web.getByRole("link").click();
    const tabs = page.getByRole("navigation", { name: "Parts of the pod" });
    const shown: Record<string, Locator> = {
      Overview: page.getByRole("heading", { name: "Conditions" }),
      Logs: page.getByRole("log").getByText(/^line/),
      Shell: page.locator(".xterm-rows", { hasText: "#" }),
      Processes: page.getByRole("columnheader", { name: "Command" }),
      Events: page.getByRole("cell", { name: "Started" }),
      Manifest: page.getByRole("button", { name: "Try an edit" }),
    };
    for (const [tab, sign] of Object.entries(shown)) {
      await tabs.getByRole("link", { name: tab }).click();
      await check(tab, sign);
    }
    await page.getByRole("button", { name: "Delete" }).click();
    await check("a question", page.getByRole("dialog"));
    await page.keyboard.press("Escape");
    await page.goto(`${origin}/#/pods/default/nothing`);
    await check("no such pod", page.getByText("There is no such pod"));
    await follow(page, "Node");
    await check("node", page.getByRole("heading", { name: "Images" }));
    await follow(page, "Apply");
    await check("apply", page.getByRole("heading", { name: "Apply a manifest" }));
    await context.clearCookies();
    await page.goto(`${origin}/#/pods/default/nothing/logs`);
    await page.reload();
    await follow(page, "Pods");
    await web.getByRole("link").click();
    await page.goto(`${page.url()}/logs`);
    await check("logs without a session", page.getByText("This part needs a session"));
    await context.close();
  });

  test("no request left for another host, and no script failed", () => {
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
  });
});
