import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { applyJsonPatch, applyMergePatch, applyStrategicPatch, PatchError } from "../../src/apiserver/patch-object.ts";

/** Document, patch and result in YAML; the document is not changed. */
function expectPatched(apply: (doc: unknown, patch: unknown) => unknown, doc: string, patch: string, want: string) {
  const before: unknown = parse(doc);
  expect(apply(before, parse(patch))).toEqual(parse(want));
  expect(before).toEqual(parse(doc));
}

describe("a JSON patch", () => {
  test.each([
    ["adds a member", "{a: 1}", "[{op: add, path: /b, value: 2}]", "{a: 1, b: 2}"],
    ["adds to the end of a list", "{a: [1]}", "[{op: add, path: /a/-, value: 2}]", "{a: [1, 2]}"],
    ["adds into a list", "{a: [1, 3]}", "[{op: add, path: /a/1, value: 2}]", "{a: [1, 2, 3]}"],
    ["removes", "{a: 1, b: 2}", "[{op: remove, path: /b}]", "{a: 1}"],
    ["replaces", "{a: [1]}", "[{op: replace, path: /a/0, value: 5}]", "{a: [5]}"],
    ["moves", "{a: 1}", "[{op: move, from: /a, path: /b}]", "{b: 1}"],
    ["copies", "{a: {x: 1}}", "[{op: copy, from: /a, path: /b}]", "{a: {x: 1}, b: {x: 1}}"],
    ["escapes", "{a/b: 1, c~d: 2}", "[{op: remove, path: /a~1b}, {op: replace, path: /c~0d, value: 3}]", "{c~d: 3}"],
    ["holds a test", "{a: {b: [1]}}", "[{op: test, path: /a, value: {b: [1]}}]", "{a: {b: [1]}}"],
  ])("%s", (_, doc, patch, want) => expectPatched(applyJsonPatch, doc, patch, want));

  test.each([
    ["has a test that fails", "[{op: test, path: /a, value: 2}]"],
    ["removes what is not there", "[{op: remove, path: /x}]"],
    ["replaces what is not there", "[{op: replace, path: /x, value: 1}]"],
    ["has an index with a leading zero", "[{op: replace, path: /l/00, value: 1}]"],
    ["has an index beyond the end", "[{op: add, path: /l/9, value: 1}]"],
    ["has an unknown operation", "[{op: merge, path: /a}]"],
    ["adds without a value", "[{op: add, path: /b}]"],
    ["is no list", "{op: add}"],
  ])("is refused when it %s", (_, patch) => {
    expect(() => applyJsonPatch({ a: 1, l: [1] }, parse(patch))).toThrow(PatchError);
  });

  const manyTimes = (count: number, operation: object) => Array.from({ length: count }, () => operation);
  const longList = Array.from({ length: 300_000 }, () => 1);
  test.each([
    { when: "a list into itself", doc: { l: [1] }, patch: manyTimes(40, { op: "copy", from: "/l", path: "/l/-" }) },
    { when: "the document into itself", doc: { l: [] }, patch: manyTimes(40, { op: "copy", from: "", path: "/l/-" }) },
    { when: "a long list", doc: { l: longList }, patch: manyTimes(9900, { op: "copy", from: "/l", path: "/m" }) },
    { when: "an element", doc: { l: longList }, patch: manyTimes(9900, { op: "move", from: "/l/9", path: "/l/99" }) },
  ])("is refused soon when it copies or moves $when again and again", ({ doc, patch }) => {
    const startMs = performance.now();
    expect(() => applyJsonPatch(doc, patch)).toThrow(/may (copy|move)/);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });

  test("a member called __proto__ is a member", () => {
    const patched = applyJsonPatch({}, [{ op: "add", path: "/__proto__", value: { x: 1 } }]) as object;
    expect(Object.hasOwn(patched, "__proto__")).toBe(true);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

test.each([
  ["removes by null", "{a: 1, b: 2}", "{a: null}", "{b: 2}"],
  ["merges maps", "{a: {x: 1, y: 2}}", "{a: {y: 3}}", "{a: {x: 1, y: 3}}"],
  ["replaces lists", "{a: [1, 2]}", "{a: [3]}", "{a: [3]}"],
  ["drops null inside a new map", "{}", "{a: {x: null, y: 1}}", "{a: {y: 1}}"],
])("a merge patch: %s", (_, doc, patch, want) => expectPatched(applyMergePatch, doc, patch, want));

describe("a strategic merge patch", () => {
  test.each([
    [
      "merges a container by name",
      "{containers: [{name: a, image: 'x:1'}, {name: b, image: 'y:1'}]}",
      "{containers: [{name: b, image: 'y:2'}]}",
      "{containers: [{name: a, image: 'x:1'}, {name: b, image: 'y:2'}]}",
    ],
    [
      "appends a new container",
      "{containers: [{name: a}]}",
      "{containers: [{name: b, image: y}]}",
      "{containers: [{name: a}, {name: b, image: y}]}",
    ],
    [
      "deletes by $patch",
      "{containers: [{name: a}, {name: b}]}",
      "{containers: [{name: a, $patch: delete}]}",
      "{containers: [{name: b}]}",
    ],
    [
      "replaces a list by $patch",
      "{containers: [{name: a}, {name: b}]}",
      "{containers: [{name: c}, {$patch: replace}]}",
      "{containers: [{name: c}]}",
    ],
    ["replaces a map by $patch", "{labels: {a: 1, b: 2}}", "{labels: {$patch: replace, c: 3}}", "{labels: {c: 3}}"],
    [
      "merges env of a container by name, and null removes a field",
      "{containers: [{name: a, env: [{name: X, value: 1}, {name: Y, value: 2}], tty: true}]}",
      "{containers: [{name: a, env: [{name: Y, value: 3}], tty: null}]}",
      "{containers: [{name: a, env: [{name: X, value: 1}, {name: Y, value: 3}]}]}",
    ],
    [
      "replaces lists of scalars",
      "{containers: [{name: a, command: [x, y]}]}",
      "{containers: [{name: a, command: [z]}]}",
      "{containers: [{name: a, command: [z]}]}",
    ],
    [
      "distinguishes ports of one number by their protocol",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: UDP, hostPort: 53}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP, hostPort: 53}]}]}",
    ],
    [
      "changes the protocol of a port, as kubectl apply asks for it",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}], $setElementOrder/ports: [{containerPort: 53}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}]}]}",
    ],
    [
      "adds a port of another protocol, as kubectl apply asks for it",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}], $setElementOrder/ports: [{containerPort: 53}, {containerPort: 53}]}]}",
      "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}",
    ],
    [
      "keeps only what $retainKeys names, so that the source of a volume can change",
      "{volumes: [{name: v, emptyDir: {}}]}",
      "{volumes: [{name: v, $retainKeys: [name, hostPath], hostPath: {path: /x}, emptyDir: null}]}",
      "{volumes: [{name: v, hostPath: {path: /x}}]}",
    ],
    [
      "orders by $setElementOrder",
      "{containers: [{name: a}, {name: b}]}",
      "{$setElementOrder/containers: [{name: c}, {name: b}, {name: a}], containers: [{name: c}]}",
      "{containers: [{name: c}, {name: b}, {name: a}]}",
    ],
    [
      "adds to finalizers and takes from them",
      "{finalizers: [a, b]}",
      "{finalizers: [c], $deleteFromPrimitiveList/finalizers: [a]}",
      "{finalizers: [b, c]}",
    ],
  ])("%s", (_, doc, patch, want) => expectPatched(applyStrategicPatch, doc, patch, want));

  test("long lists are merged and ordered in linear time", () => {
    const env = Array.from({ length: 40_000 }, (_, index) => ({ name: `N${index}` }));
    const before = process.cpuUsage();
    const patch = { env, "$setElementOrder/env": env.toReversed() };
    expect(applyStrategicPatch({ env: [{ name: "X" }] }, patch)).toEqual({ env: [{ name: "X" }, ...env.toReversed()] });
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(3);
  });

  test("an item without its merge key is refused", () => {
    const patch = () => applyStrategicPatch({ containers: [{ name: "a" }] }, { containers: [{ image: "x" }] });
    expect(patch).toThrow("does not contain declared merge key: name");
  });
});
