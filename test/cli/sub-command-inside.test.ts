import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { ApiObject } from "../../src/cli/client/api-client.ts";
import { podsOfObject } from "../../src/cli/client/choose-pod.ts";
import { parseCopyPlace } from "../../src/cli/commands/cp.ts";
import { graceOf } from "../../src/cli/commands/delete.ts";
import { parsePortPair, resolvePort } from "../../src/cli/commands/port-forward.ts";
import { aContainer, aPod } from "../support/builders.ts";

test.each([
  ["8080:80", { local: 8080, remote: "80" }],
  ["80", { local: 80, remote: "80" }],
  [":80", { local: 0, remote: "80" }],
  ["8080:http", { local: 8080, remote: "http" }],
])("port %s", (text, want) => expect(parsePortPair(text)).toEqual(want));

test.each(["", "80:", "a:80", "0", "1:70000", "1:2:3"])("port %p is refused", (text) => {
  expect(() => parsePortPair(text)).toThrow("LOCAL:REMOTE");
});

test.each([
  ["web:/etc/hosts", { pod: "web", path: "/etc/hosts" }],
  ["prod/web:/etc/hosts", { pod: "prod/web", path: "/etc/hosts" }],
  ["/tmp/a:b", { path: "/tmp/a:b" }],
  ["./a:b", { path: "./a:b" }],
  ["hosts", { path: "hosts" }],
])("place %s", (text, want) => expect(parseCopyPlace(text)).toEqual(want));

test("a pod without a path is refused", () => expect(() => parseCopyPlace("web:")).toThrow("names no path"));

describe("ports behind a name", () => {
  const web = aPod({
    containers: [aContainer({ name: "a", ports: [{ containerPort: 8080, name: "http", protocol: "TCP" }] })],
  });
  const service: ApiObject = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: {
      ports: [
        { name: "www", port: 80, targetPort: "http" },
        { port: 90, targetPort: 9090 },
      ],
    },
  };

  test.each([
    ["80", undefined, 80],
    ["http", undefined, 8080],
    ["80", service, 8080],
    ["www", service, 8080],
    ["90", service, 9090],
  ])("%s", (remote, object, want) => expect(resolvePort(remote, web, object)).toBe(want));

  test("an unknown one is refused with those there are", () => {
    expect(() => resolvePort("htp", web, undefined)).toThrow('no port named "htp"; it has http');
    expect(() => resolvePort("81", web, service)).toThrow('service "web" has no port 81; it has 80 (www), 90');
  });
});

describe("the pods of an object", () => {
  const labelled = (name: string, labels: Record<string, string>, owner?: string) => ({
    ...aPod(),
    metadata: {
      name,
      namespace: "default",
      labels,
      ...(owner && { ownerReferences: [{ apiVersion: "v1", kind: "Job", name: "j", uid: owner }] }),
    },
  });
  const pods = [labelled("a", { app: "web" }), labelled("b", { app: "db" }), labelled("c", {}, "u1")] as Pod[];
  const object = (selector: unknown, uid = "u1"): ApiObject => ({
    apiVersion: "v1",
    kind: "X",
    metadata: { name: "x", uid },
    spec: { selector },
  });
  const names = (it: ApiObject) => podsOfObject(it, pods).map(({ metadata }) => metadata.name);

  test.each([
    [{ app: "web" }, ["a"]],
    [{ matchLabels: { app: "db" } }, ["b"]],
    [{ matchExpressions: [{ key: "app", operator: "Exists" }] }, ["a", "b"]],
    [undefined, ["c"]],
  ])("%j", (selector, want) => expect(names(object(selector))).toEqual(want));
});

test.each<[Record<string, string | true>, number | undefined]>([
  [{}, undefined],
  [{ "grace-period": "7" }, 7],
  [{ "grace-period": "-1" }, undefined],
  [{ "grace-period": "0" }, 1],
  [{ now: true }, 1],
  [{ force: true }, 0],
  [{ force: true, "grace-period": "0" }, 0],
])("%j is a grace period of %p", (flags, want) => {
  const value = (flag: string) => (typeof flags[flag] === "string" ? flags[flag] : undefined);
  expect(graceOf({ value, isOn: (flag) => flags[flag] === true })).toBe(want);
});

test.each<[Record<string, string | true>]>([
  [{ "grace-period": "x" }],
  [{ now: true, "grace-period": "5" }],
  [{ force: true, "grace-period": "5" }],
])("%j is refused", (flags) => {
  const value = (flag: string) => (typeof flags[flag] === "string" ? flags[flag] : undefined);
  expect(() => graceOf({ value, isOn: (flag) => flags[flag] === true })).toThrow(/grace-period/);
});
