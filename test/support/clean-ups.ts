import { afterEach } from "bun:test";

/**
 * Gives a test file a function that registers what is done after the present test, the last registered first. To be called at the
 * top of each file: the hook belongs to the file that calls.
 */
export function cleanUps(): (cleanUp: () => unknown) => void {
  const all: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of all.splice(0).reverse()) await cleanUp();
  });
  return (cleanUp) => void all.push(cleanUp);
}
