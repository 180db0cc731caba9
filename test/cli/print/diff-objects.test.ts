import { expect, test } from "bun:test";
import { describeObjectEffects, type PlainObject, shownObjects } from "../../../src/cli/print/diff-objects.ts";

const deployment = (replicas: number, image: string): PlainObject => ({
  kind: "Deployment",
  metadata: { name: "web" },
  spec: { replicas, template: { spec: { containers: [{ name: "a", image }] } } },
});

test.each([
  [undefined, deployment(2, "a"), ["starts 2 pods"]],
  [deployment(2, "a"), deployment(2, "a"), []],
  [deployment(2, "a"), deployment(3, "a"), ["starts 1 pod"]],
  [deployment(3, "a"), deployment(1, "b"), ["replaces its pods by new ones", "stops 2 pods"]],
  [undefined, { kind: "ConfigMap", metadata: { name: "c" }, data: {} }, []],
])("%#", (before, after, want) => expect(describeObjectEffects(before, after)).toEqual(want));

test("values of Secrets are hidden, those that differ are distinguished", () => {
  const secret = (data: Record<string, string>): PlainObject => ({ kind: "Secret", metadata: { name: "s" }, data });
  const [before, after] = shownObjects(secret({ a: "MQ==", b: "Mg==" }), secret({ a: "MQ==", b: "Mw==", c: "NA==" }));
  expect(before).toMatchObject({ data: { a: "***", b: "*** (before)" } });
  expect(after).toMatchObject({ data: { a: "***", b: "*** (after)", c: "*** (after)" } });
});
