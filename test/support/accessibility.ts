import axe from "axe-core";
import type { Page } from "playwright-core";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 360, height: 780 },
] as const;

/**
 * Problems of what a page shows on a desktop and on a phone: rules of axe-core, and a page that is wider than the screen.
 * @param areColorsAll only colours differ from a page that was checked already
 */
export async function findAccessibilityProblems(page: Page, areColorsAll = false): Promise<string[]> {
  // axe-core leaves the size of targets, a rule of WCAG 2.2 AA, out by default.
  const options = areColorsAll ? { runOnly: ["color-contrast"] } : { rules: { "target-size": { enabled: true } } };
  const problems: string[] = [];
  await page.evaluate(axe.source);
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
