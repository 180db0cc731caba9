import { expect, test } from "bun:test";
import { MadeOfEach } from "../../../src/base/model/memoized.ts";

test("of a long list only what has changed is looked at, and what has the same content is the same part", () => {
  const parts = new MadeOfEach<{ name: string; value: number }, { of: number }>(({ name }) => name);
  const objects = Array.from({ length: 100 }, (_, value) => ({ name: `${value}`, value }));
  let looks = 0;
  const update = (list: typeof objects, context: unknown) => {
    looks = 0;
    const inputsOf = (object: (typeof objects)[number]) => {
      looks++;
      return [object.value];
    };
    return parts.update(list, [context], inputsOf, ({ value }) => ({ of: value }));
  };
  const first = update(objects, "a");
  expect([update(objects, "a")[99] === first[99], looks]).toEqual([true, 0]);
  // Another object with the same inputs.
  const again = objects.with(7, { ...objects[7]! });
  expect([update(again, "a")[7] === first[7], looks]).toEqual([true, 1]);
  // One more at the beginning moves all others.
  const more = [{ name: "new", value: -1 }, ...again];
  expect([update(more, "a")[8] === first[7], looks]).toEqual([true, 1]);
  expect([update(more, "b")[8] === first[7], looks]).toEqual([true, 101]);
  expect(update(more.with(8, { name: "7", value: 8 }), "b")[8]).toEqual({ of: 8 });
});
