import { expect, test } from "bun:test";
import { writeYaml } from "../../../src/base/text/write-yaml.ts";

test("strings that another reader would take for something else are quoted", () => {
  const shared = { a: 1 };
  expect(
    writeYaml({ time: "2026-11-21T08:40:09Z", on: "off", mode: "0777", text: "a\nb\n", one: shared, two: shared }),
  ).toBe('time: "2026-11-21T08:40:09Z"\n"on": "off"\nmode: "0777"\ntext: |\n  a\n  b\none:\n  a: 1\ntwo:\n  a: 1\n');
});
