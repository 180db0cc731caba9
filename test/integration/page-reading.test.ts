import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { HOST, shell, sleeper } from "../support/manifests.ts";
import { follow, logIn, openPage, row, shows, untilGone } from "../support/page.ts";
import type { TestNode } from "../support/test-node.ts";

/** Ten thousand lines a second, until they were read. */
const FLOOD = "until [ -e /tmp/read ]; do seq 1 1000; usleep 100000; done; exec sleep 3600";
const LONG =
  'head -c 1048576 /dev/zero | tr "\\0" x; echo; printf "<b>bold</b> \\342\\200\\256txt.exe \\033[2J\\033[31mred\\033[0m\\n"; exec sleep 3600';

describeWithEngine("reading the page", () => {
  let browser: Browser;
  let node: TestNode;

  beforeAll(async () => {
    browser = await launchBrowser();
    node = testNode();
    node.writeManifest("flood.json", sleeper("flood", shell(FLOOD), HOST));
    node.writeManifest("long.json", sleeper("long", shell(LONG), HOST));
    node.writeManifest("twice.json", sleeper("twice", shell('echo "run $(cat /proc/uptime)"; sleep 2; exit 1'), HOST));
    await node.start();
  });
  afterAll(() => browser?.close());

  async function openLog(page: Page, name: string) {
    await follow(page, "Pods");
    await page.getByRole("link", { name: new RegExp(`^${name}-`) }).click();
    await follow(page, "Logs");
    return page.getByRole("log");
  }

  test("ten thousand lines a second: the page answers, and what it keeps is bounded", async () => {
    const page = await logIn(browser, node);
    const log = await openLog(page, "flood");
    await shows(page, /5000 lines, \d{5,} older ones dropped/);
    await page.getByRole("button", { name: "Pause" }).click();
    const paused = page.getByText(/dropped, paused/);
    await paused.waitFor();
    const linesOf = async () => /^\d+ lines, \d+ older/.exec((await paused.textContent()) ?? "")?.[0];
    const before = await linesOf();
    expect(await log.locator(".line").count()).toBe(1000);
    await page.getByLabel("Search in the log").fill("999");
    await shows(page, /^5 matches in 5000 lines/);
    await page.getByLabel("Search in the log").fill("");
    await shows(page, /paused: \d{4,} new lines wait/);
    expect(await linesOf()).toBe(before);
    await page.getByRole("button", { name: "Continue" }).click();
    await untilGone(paused);
    // A reader who scrolls up sees lines that stay, until they go to the end.
    await log.evaluate((box) => box.scrollTo(0, box.scrollHeight / 2));
    const toEnd = page.getByRole("button", { name: /To the end \(\d{4,} new\)/ });
    await toEnd.waitFor();
    const first = await log.locator(".line").first().textContent();
    await page.getByRole("button", { name: "Show older lines" }).click();
    await log.locator(".line").nth(1999).waitFor();
    expect(await log.locator(".line").nth(1000).textContent()).toBe(first);
    await toEnd.click();
    await untilGone(toEnd);
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    expect(usedSize).toBeLessThan(50e6);
    await page.close();
    expect((await node.run("exec flood -- touch /tmp/read")).exitCode).toBe(0);
  });

  test("a line of a megabyte is cut; markup, escapes and marks that reverse text are shown as text or dropped", async () => {
    const page = await logIn(browser, node);
    const log = await openLog(page, "long");
    await shows(log, "the line is longer");
    await node.until("the last line", async () => {
      return (await log.locator(".line").last().textContent()) === "<b>bold</b> txt.exe red";
    });
    expect(await log.locator("b").count()).toBe(0);
    const started = page.waitForEvent("download");
    await follow(page, "Download");
    const download = await started;
    expect(download.suggestedFilename()).toMatch(/^long-.*-app\.log$/);
    expect(readFileSync(await download.path()).byteLength).toBeGreaterThan(1_048_576);
    await page.close();
  });

  test("the previous container's log", async () => {
    const page = await logIn(browser, node);
    await row(page, /^twice-.* 0\/1/).waitFor();
    const log = await openLog(page, "twice");
    await shows(log, /^run/);
    await page.getByLabel("Previous").check();
    await shows(log, /^run/);
    await page.close();
  });

  test("by keyboard alone: a pod, its log, a question and back", async () => {
    const page = await logIn(browser, node);
    const focused = () =>
      page.evaluate<string>("document.activeElement.textContent || document.activeElement.ariaLabel");
    const tabTo = async (wanted: RegExp) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        if (wanted.test(await focused())) return;
      }
      throw new Error(`${wanted} is not reached by the Tab key`);
    };
    await tabTo(/^flood-/);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Restart" }).waitFor();
    // The new view takes the focus after it is painted.
    await page.locator("main:focus").waitFor();
    await tabTo(/^Restart$/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    expect(await focused()).toBe("Cancel");
    await page.keyboard.press("Escape");
    await untilGone(page.getByRole("dialog"));
    expect(await focused()).toBe("Restart");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).press("Enter");
    await untilGone(page.getByRole("dialog"));
    expect(await focused()).toBe("Restart");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").click({ position: { x: 3, y: 3 } });
    expect(await page.getByRole("dialog").count()).toBe(1);
    await page.mouse.click(5, 5);
    await untilGone(page.getByRole("dialog"));
    await tabTo(/^Logs$/);
    await page.keyboard.press("Enter");
    await page.getByRole("log").waitFor();
    await tabTo(/^Pause$/);
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Continue" }).waitFor();
    await page.close();
  });

  test("nothing moves while the overview loads and is updated; times are absolute on hover", async () => {
    const page = await browser.newPage();
    await page.addInitScript(`window.shift = 0; new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) window.shift += value;
    }).observe({ type: "layout-shift", buffered: true });`);
    await page.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
    await shows(page, /of \d+ cores/);
    await page.getByRole("img", { name: "CPU of the last ten minutes" }).first().waitFor();
    expect(await page.evaluate<number>("window.shift")).toBeLessThan(0.1);
    const time = row(page, /^flood-/).locator("time:visible");
    await time.hover();
    expect(await time.getAttribute("title")).toMatch(/20\d\d.*\d:\d\d.*\(20\d\d-.*Z\)$/);
    await page.close();
  });

  test("a hidden tab holds no connection and asks for nothing; shown again, it has the present state at once", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    // A headless browser shows every tab.
    await page.addInitScript(`window.isHidden = false;
      Object.defineProperty(Document.prototype, "hidden", { get: () => window.isHidden });
      window.hide = (isHidden) => { window.isHidden = isHidden; document.dispatchEvent(new Event("visibilitychange")); };`);
    await page.clock.install();
    const asked: string[] = [];
    let streams = 0;
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    page.on("websocket", (socket) => {
      asked.push(new URL(socket.url()).pathname);
      streams++;
      socket.on("close", () => streams--);
    });
    await page.goto(`http://127.0.0.1:${node.cadvisorPort}/`);
    await follow(page, /^flood-/);
    await page.locator(".chart canvas").first().waitFor();
    await page.evaluate("hide(true)");
    // As when the browser keeps the page for its "back" button: without the half minute.
    await page.evaluate('dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }))');
    await node.until("the stream to end", () => streams === 0);
    asked.length = 0;
    await page.clock.fastForward(600_000);
    node.writeManifest("while-hidden.json", sleeper("while-hidden", {}, HOST));
    await node.until("the pod", () => node.pod("while-hidden"));
    expect({ asked, streams }).toEqual({ asked: [], streams: 0 });
    await page.evaluate("hide(false)");
    await follow(page, "Pods");
    await row(page, /^while-hidden-/).waitFor();
    node.removeManifest("while-hidden.json");
    await untilGone(row(page, /^while-hidden-/));
    await context.close();
  });

  test("a wrong line of a manifest is marked", async () => {
    const page = await logIn(browser, node);
    await follow(page, /^long-/);
    await follow(page, "Manifest");
    node.writeManifest(
      "long.json",
      JSON.stringify(sleeper("long", shell(LONG), HOST)).replace('"image"', '\n"imagee"'),
    );
    await page.locator(".source-line.wrong", { hasText: "imagee" }).waitFor();
    await shows(page, /^Error, column 1: .*imagee/);
    await follow(page, "Processes");
    await page.getByRole("cell", { name: "sleep 3600" }).waitFor();
    await page.close();
  });

  test("the history of the usage outlives the kubelet", async () => {
    const other = testNode();
    const first = await other.start();
    const page = await openPage(browser, other);
    const path = "/page/api/node/history?range=1h";
    const history = async () => (await other.readJson<{ times: number[] }>(path, other.cadvisorPort)).times;
    await other.until("a sample", async () => (await history()).length > 0);
    await page.close();
    const before = await history();
    await first.stop();
    await other.start();
    expect(await history()).toEqual(before);
  });
});
