import axe from "axe-core";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import type { TestNode } from "./test-node.ts";

/** The address that opens a session of the page, with its token. */
export async function sessionLink(node: TestNode): Promise<string> {
  const { exitCode, stdout, stderr } = await node.run("page");
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

/** Opens the page of a node in a tab. @param address by default without a session */
export async function openPage(
  browser: Browser | BrowserContext,
  node: TestNode,
  address = `http://127.0.0.1:${node.cadvisorPort}/`,
): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await load(page, address);
  return page;
}

/**
 * Loads a page and waits until its script has run. Chromium aborts its requests whenever the machine gets or loses a network
 * interface, as it does with each container of tests that run at the same time: a page that was lost so is loaded again.
 */
export async function load(page: Page, address: string): Promise<void> {
  const run = async () => {
    // An address that differs in its fragment only would not be loaded.
    await (page.url() === address ? page.reload() : page.goto(address));
    await page.locator("#app main").first().waitFor({ state: "attached", timeout: 5000 });
  };
  for (let tries = 1; tries < 5; tries++) {
    try {
      return await run();
    } catch {
      await Bun.sleep(500);
    }
  }
  await run();
}

export const logIn = async (browser: Browser | BrowserContext, node: TestNode): Promise<Page> =>
  openPage(browser, node, await sessionLink(node));

/** Clicks a link with this name, e.g. of a tab. */
export const follow = (page: Page, name: string | RegExp) => page.getByRole("link", { name, exact: true }).click();

export const row = (page: Page, name: RegExp): Locator => page.getByRole("row", { name });

export const untilGone = (locator: Locator) => locator.waitFor({ state: "detached" });

/** Waits until a text is shown, however often. @throws Error with what is shown instead */
export async function shows(where: Page | Locator, text: string | RegExp): Promise<void> {
  try {
    await where.getByText(text).first().waitFor();
  } catch (cause) {
    const page = "page" in where ? where.page() : where;
    const shown = await page.locator("body").textContent();
    throw new Error(`${page.url()} does not show ${text}, but:\n${shown?.slice(0, 2000)}`, { cause });
  }
}

const SIZES = [
  { width: 1440, height: 900 },
  { width: 360, height: 780 },
] as const;

/**
 * Problems of what a page shows on a desktop and on a phone: rules of axe-core, and a page that is wider than the screen.
 * @param areColorsAll only colors differ from a page that was checked already
 */
export async function findAccessibilityProblems(page: Page, areColorsAll = false): Promise<string[]> {
  // axe-core leaves the size of targets, a rule of WCAG 2.2 AA, out by default.
  const options = areColorsAll ? { runOnly: ["color-contrast"] } : { rules: { "target-size": { enabled: true } } };
  const problems: string[] = [];
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  for (const size of SIZES) {
    await page.setViewportSize(size);
    const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(${JSON.stringify(options)})`);
    for (const { id, nodes } of violations) {
      problems.push(`${size.width} px: ${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
    }
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    if (width > size.width) problems.push(`${size.width} px: the page is ${width} px wide`);
  }
  return problems;
}
