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
  await page.goto(address);
  return page;
}

export const logIn = async (browser: Browser | BrowserContext, node: TestNode): Promise<Page> =>
  openPage(browser, node, await sessionLink(node));

/** Clicks a link with this name, e.g. of a tab. */
export const follow = (page: Page, name: string | RegExp) => page.getByRole("link", { name, exact: true }).click();

export const row = (page: Page, name: RegExp): Locator => page.getByRole("row", { name });

export const untilGone = (locator: Locator) => locator.waitFor({ state: "detached" });
