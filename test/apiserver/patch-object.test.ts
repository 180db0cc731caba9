import { describe, expect, test } from "bun:test";
import { applyJsonPatch, PatchError } from "../../src/apiserver/json-patch.ts";
import { applyMergePatch, patchObject } from "../../src/apiserver/patch-object.ts";
import { applyStrategicPatch } from "../../src/apiserver/strategic-merge-patch.ts";

describe("a JSON patch", () => {
  test.each([
    { when: "add a member", doc: { a: 1 }, patch: [{ op: "add", path: "/b", value: 2 }], want: { a: 1, b: 2 } },
    {
      when: "add to the end of a list",
      doc: { a: [1] },
      patch: [{ op: "add", path: "/a/-", value: 2 }],
      want: { a: [1, 2] },
    },
    {
      when: "add into a list",
      doc: { a: [1, 3] },
      patch: [{ op: "add", path: "/a/1", value: 2 }],
      want: { a: [1, 2, 3] },
    },
    { when: "remove", doc: { a: 1, b: 2 }, patch: [{ op: "remove", path: "/b" }], want: { a: 1 } },
    { when: "replace", doc: { a: [1] }, patch: [{ op: "replace", path: "/a/0", value: 5 }], want: { a: [5] } },
    { when: "move", doc: { a: 1 }, patch: [{ op: "move", from: "/a", path: "/b" }], want: { b: 1 } },
    {
      when: "copy",
      doc: { a: { x: 1 } },
      patch: [{ op: "copy", from: "/a", path: "/b" }],
      want: { a: { x: 1 }, b: { x: 1 } },
    },
    {
      when: "escapes",
      doc: { "a/b": 1, "c~d": 2 },
      patch: [
        { op: "remove", path: "/a~1b" },
        { op: "replace", path: "/c~0d", value: 3 },
      ],
      want: { "c~d": 3 },
    },
    {
      when: "a test that holds",
      doc: { a: { b: [1] } },
      patch: [{ op: "test", path: "/a", value: { b: [1] } }],
      want: { a: { b: [1] } },
    },
  ])("$when", ({ doc, patch, want }) => {
    const before = structuredClone(doc);
    expect(applyJsonPatch(doc, patch)).toEqual(want);
    expect(doc).toEqual(before);
  });

  test.each([
    { when: "a test that fails", patch: [{ op: "test", path: "/a", value: 2 }] },
    { when: "removes what is not there", patch: [{ op: "remove", path: "/x" }] },
    { when: "replaces what is not there", patch: [{ op: "replace", path: "/x", value: 1 }] },
    { when: "an index with a leading zero", patch: [{ op: "replace", path: "/l/00", value: 1 }] },
    { when: "an index beyond the end", patch: [{ op: "add", path: "/l/9", value: 1 }] },
    { when: "an unknown operation", patch: [{ op: "merge", path: "/a" }] },
    { when: "add without a value", patch: [{ op: "add", path: "/b" }] },
    { when: "no list", patch: { op: "add" } },
  ])("is refused when it $when", ({ patch }) => {
    expect(() => applyJsonPatch({ a: 1, l: [1] }, patch)).toThrow(PatchError);
  });

  test("a member called __proto__ is a member", () => {
    const patched = applyJsonPatch({}, [{ op: "add", path: "/__proto__", value: { x: 1 } }]) as object;
    expect(Object.hasOwn(patched, "__proto__")).toBe(true);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe("a merge patch", () => {
  test.each([
    { when: "null removes", doc: { a: 1, b: 2 }, patch: { a: null }, want: { b: 2 } },
    { when: "maps are merged", doc: { a: { x: 1, y: 2 } }, patch: { a: { y: 3 } }, want: { a: { x: 1, y: 3 } } },
    { when: "lists are replaced", doc: { a: [1, 2] }, patch: { a: [3] }, want: { a: [3] } },
    { when: "null inside a new map is dropped", doc: {}, patch: { a: { x: null, y: 1 } }, want: { a: { y: 1 } } },
  ])("$when", ({ doc, patch, want }) => expect(applyMergePatch(doc, patch)).toEqual(want));
});

const pod = (containers: object[], rest: object = {}) => ({ spec: { containers, ...rest } });

describe("a strategic merge patch", () => {
  test.each([
    {
      when: "merges a container by name",
      doc: pod([
        { name: "a", image: "x:1" },
        { name: "b", image: "y:1" },
      ]),
      patch: pod([{ name: "b", image: "y:2" }]),
      want: pod([
        { name: "a", image: "x:1" },
        { name: "b", image: "y:2" },
      ]),
    },
    {
      when: "appends a new container",
      doc: pod([{ name: "a" }]),
      patch: pod([{ name: "b", image: "y" }]),
      want: pod([{ name: "a" }, { name: "b", image: "y" }]),
    },
    {
      when: "deletes by $patch",
      doc: pod([{ name: "a" }, { name: "b" }]),
      patch: pod([{ name: "a", $patch: "delete" }]),
      want: pod([{ name: "b" }]),
    },
    {
      when: "replaces a list by $patch",
      doc: pod([{ name: "a" }, { name: "b" }]),
      patch: pod([{ name: "c" }, { $patch: "replace" }]),
      want: pod([{ name: "c" }]),
    },
    {
      when: "replaces a map by $patch",
      doc: { metadata: { labels: { a: "1", b: "2" } } },
      patch: { metadata: { labels: { $patch: "replace", c: "3" } } },
      want: { metadata: { labels: { c: "3" } } },
    },
    {
      when: "merges env of a container by name, and null removes a field",
      doc: pod([
        {
          name: "a",
          env: [
            { name: "X", value: "1" },
            { name: "Y", value: "2" },
          ],
          tty: true,
        },
      ]),
      patch: pod([{ name: "a", env: [{ name: "Y", value: "3" }], tty: null }]),
      want: pod([
        {
          name: "a",
          env: [
            { name: "X", value: "1" },
            { name: "Y", value: "3" },
          ],
        },
      ]),
    },
    {
      when: "replaces lists of scalars",
      doc: pod([{ name: "a", command: ["x", "y"] }]),
      patch: pod([{ name: "a", command: ["z"] }]),
      want: pod([{ name: "a", command: ["z"] }]),
    },
    {
      when: "distinguishes ports of one number by their protocol",
      doc: pod([
        {
          name: "a",
          ports: [
            { containerPort: 53, protocol: "TCP" },
            { containerPort: 53, protocol: "UDP" },
          ],
        },
      ]),
      patch: pod([{ name: "a", ports: [{ containerPort: 53, protocol: "UDP", hostPort: 53 }] }]),
      want: pod([
        {
          name: "a",
          ports: [
            { containerPort: 53, protocol: "TCP" },
            { containerPort: 53, protocol: "UDP", hostPort: 53 },
          ],
        },
      ]),
    },
    {
      when: "keeps only what $retainKeys names, so that the source of a volume can change",
      doc: pod([], { volumes: [{ name: "v", emptyDir: {} }] }),
      patch: pod([], {
        volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" }, emptyDir: null }],
      }),
      want: pod([], { volumes: [{ name: "v", hostPath: { path: "/x" } }] }),
    },
    {
      when: "orders by $setElementOrder",
      doc: pod([{ name: "a" }, { name: "b" }]),
      patch: {
        spec: {
          "$setElementOrder/containers": [{ name: "c" }, { name: "b" }, { name: "a" }],
          containers: [{ name: "c" }],
        },
      },
      want: pod([{ name: "c" }, { name: "b" }, { name: "a" }]),
    },
    {
      when: "adds to finalizers and takes from them",
      doc: { metadata: { finalizers: ["a", "b"] } },
      patch: { metadata: { finalizers: ["c"], "$deleteFromPrimitiveList/finalizers": ["a"] } },
      want: { metadata: { finalizers: ["b", "c"] } },
    },
  ])("$when", ({ doc, patch, want }) => {
    const before = structuredClone(doc);
    expect(applyStrategicPatch(doc, patch)).toEqual(want as unknown as object);
    expect(doc).toEqual(before);
  });

  test("an item without its merge key is refused", () => {
    expect(() => applyStrategicPatch(pod([{ name: "a" }]), pod([{ image: "x" }]))).toThrow(
      "does not contain declared merge key: name",
    );
  });
});

test("annotations can be replaced where there are none, as kubectl rollout undo does", () => {
  const type = "application/json-patch+json";
  const undo = [
    { op: "replace", path: "/spec", value: 2 },
    { op: "replace", path: "/metadata/annotations", value: { a: "1" } },
  ];
  const before = { metadata: { name: "d" }, spec: 1 };
  expect(patchObject(before, type, undo)).toEqual({ metadata: { name: "d", annotations: { a: "1" } }, spec: 2 });
  expect(patchObject(before, type, [undo[0]])).toEqual({ metadata: { name: "d" }, spec: 2 });
});
