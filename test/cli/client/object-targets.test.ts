import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ApiClient, type ApiResource, parseWarnings } from "../../../src/cli/client/api-client.ts";
import { readWrittenObjects, refuseSecond, selectObjects } from "../../../src/cli/client/object-targets.ts";
import type { CommandRequest } from "../../../src/cli/sub-command.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

const kind = (name: string, singularName: string, group = "", more: Partial<ApiResource> = {}): ApiResource => ({
  group,
  version: "v1",
  name,
  singularName,
  kind: singularName,
  namespaced: true,
  verbs: ["list"],
  ...more,
});
const KINDS = [
  kind("pods", "pod", "", { kind: "Pod", shortNames: ["po"], categories: ["all"] }),
  kind("services", "service", "", { shortNames: ["svc"], categories: ["all"] }),
  kind("deployments", "deployment", "apps", { shortNames: ["deploy"] }),
  kind("leases", "", "apps", {}),
];
const OBJECTS: Record<string, string[]> = { pods: ["web", "db-node1"], services: ["web"], deployments: [] };

/** A local API with a few objects, all in the namespace "default". */
function apiServer(): { api: ApiClient; asked: string[]; stop: () => Promise<void> } {
  const socket = `${tempDir()}/api.sock`;
  const asked: string[] = [];
  const server = Bun.serve({
    unix: socket,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      asked.push(pathname + search);
      const preferredVersion = { groupVersion: "policy/v1", version: "v1" };
      const groups = [{ versions: [{ groupVersion: "apps/v1" }] }, { versions: [], preferredVersion }];
      if (pathname === "/apis") return Response.json({ groups });
      const list = (group: string) => KINDS.filter((it) => it.group === group);
      if (pathname === "/api/v1") return Response.json({ groupVersion: "v1", resources: list("") });
      if (pathname === "/apis/apps/v1") return Response.json({ groupVersion: "apps/v1", resources: list("apps") });
      const [, plural = "", name] = /(pods|services|deployments)(?:\/(.+))?$/.exec(pathname) ?? [];
      const names = pathname.includes("/namespaces/lab/") && name !== undefined ? [] : OBJECTS[plural]!;
      const items = names.map((it) => ({ metadata: { name: it, namespace: "default" }, spec: { nodeName: "node1" } }));
      if (name === undefined) return Response.json({ items });
      // A patch that changes nothing is accepted for objects of files, too.
      if (request.method === "PATCH" && name === "db-node1" && (await request.text()) !== "{}")
        return Response.json({ message: "it comes from /m/db.yaml: edit that file" }, { status: 403 });
      const found = items.find((item) => item.metadata.name === name);
      return found
        ? Response.json(found)
        : Response.json({ message: `${plural} "${name}" not found`, reason: "NotFound" }, { status: 404 });
    },
  });
  return { api: new ApiClient(socket), asked, stop: () => server.stop(true) };
}

const request = (positionals: string[], flags: Record<string, string | true> = {}): CommandRequest =>
  ({
    positionals,
    value: (flag: string) => (typeof flags[flag] === "string" ? flags[flag] : undefined),
    values: () => [],
    isOn: (flag: string) => flags[flag] === true,
  }) as unknown as CommandRequest;

test("words name kinds, objects of a kind, or pods", async () => {
  const { api, stop } = apiServer();
  const read = async (...words: string[]) => {
    const { kinds, named, assumed } = await readWrittenObjects(api, words);
    return [
      kinds.map(({ name }) => name),
      named.map(({ resource, name }) => `${resource.name}/${name}`),
      assumed !== undefined,
    ];
  };
  expect(await read("po,svc")).toEqual([["pods", "services"], [], false]);
  expect(await read("all")).toEqual([["pods", "services"], [], false]);
  expect(await read("po,svc", "web")).toEqual([[], ["pods/web", "services/web"], false]);
  expect(await read("pod/web", "deploy/a")).toEqual([[], ["pods/web", "deployments/a"], false]);
  expect(await read("Deployment", "a", "b")).toEqual([[], ["deployments/a", "deployments/b"], false]);
  expect(await read("web", "db")).toEqual([[], ["pods/web", "pods/db"], true]);
  expect(await read()).toEqual([[], [], false]);
  for (const words of [["pod/"], ["a/b/c"], ["po,nope"], ["pods", "svc/web"], ["nope/a"]]) {
    expect(readWrittenObjects(api, words)).rejects.toThrow(/KIND\/NAME|has no kind|none of the pods/);
  }
  expect(readWrittenObjects(api, ["./web"])).rejects.toThrow('the server has no kind "."; it has ');
  await stop();
});

test("a misspelt kind in front of a name selects nothing", async () => {
  const { api, stop } = apiServer();
  const rules = { takesFiles: false, verb: "delete" };
  const select = (words: string[], flags = {}) => selectObjects(api, request(words, flags), rules);
  expect(select(["srvice", "web"])).rejects.toThrow("did you mean service?; nothing was changed");
  expect((await select(["web", "db"])).map(({ name }) => name)).toEqual(["web", "db"]);
  // Without its node's name.
  expect((await select(["db", "web"])).map(({ name }) => name)).toEqual(["db", "web"]);
  expect(select(["pods"])).rejects.toThrow("delete pod NAME; or give --all or --selector");
  expect(select([])).rejects.toThrow("name what to delete");
  expect(select(["pod/web"], { all: true })).rejects.toThrow("not both");
  expect(select(["pod/web"], { "all-namespaces": true })).rejects.toThrow("give -n, not -A");
  await stop();
});

test("a kind that is not served keeps no other object of the file back", async () => {
  const { api, stop } = apiServer();
  const file = join(tempDir(), "all.yaml");
  const kinds = ["v1\nkind: Pod", "policy/v1\nkind: PodDisruptionBudget", "v1\nkind: Pod"];
  writeFileSync(file, kinds.map((it, i) => `---\napiVersion: ${it}\nmetadata: {name: p${i}}\n`).join(""));
  const input = { ...request([]), values: (flag: string) => (flag === "filename" ? [file] : []) } as CommandRequest;
  const unserved: string[] = [];
  const onUnserved = (message: string) => void unserved.push(message);
  const found = await selectObjects(api, input, { takesFiles: true, verb: "delete", onUnserved });
  expect(found.map(({ name }) => name)).toEqual(["p0", "p2"]);
  expect(unserved).toEqual([
    `${file}: PodDisruptionBudget "p1": the server does not serve PodDisruptionBudget of policy/v1`,
  ]);
  expect(selectObjects(api, input, { takesFiles: true, verb: "wait for" })).rejects.toThrow("does not serve");
  await stop();
});

test("a pod that runs from a manifest already is not submitted as a second one", async () => {
  const { api, stop } = apiServer();
  const refuse = async (kind: string, name: string, isNew = false) =>
    refuseSecond(api, { resource: await api.findResource(kind), namespace: "default", name }, isNew);
  await expect(refuse("po", "db")).rejects.toThrow("/m/db.yaml: edit that file");
  await expect(refuse("po", "db-node1", true)).rejects.toThrow("/m/db.yaml: edit that file");
  await refuse("po", "web");
  await refuse("po", "new");
  await refuse("svc", "db");
  await stop();
});

test("--all, --selector and --field-selector ask the server for a list", async () => {
  const { api, asked, stop } = apiServer();
  const rules = { takesFiles: false, verb: "delete" };
  const all = await selectObjects(api, request(["po,svc"], { selector: "app in (a)", namespace: "lab" }), rules);
  expect(all.map(({ resource, name }) => `${resource.name}/${name}`)).toEqual([
    "pods/web",
    "pods/db-node1",
    "services/web",
  ]);
  expect(asked).toContain("/api/v1/namespaces/lab/pods?labelSelector=app+in+%28a%29");
  await selectObjects(api, request(["pods"], { all: true, "all-namespaces": true }), rules);
  expect(asked).toContain("/api/v1/pods");
  await stop();
});

test("an absent object is reported with the nearest name", async () => {
  const { api, stop } = apiServer();
  const pods = await api.findResource("po");
  expect(api.requireObject(pods, "default", "bd-node1")).rejects.toThrow('did you mean "db-node1"?');
  expect(api.requireObject(pods, "default", "wbe")).rejects.toThrow('pods "wbe" not found; did you mean "web"?');
  expect(api.requireObject(pods, "lab", "web")).rejects.toThrow('it is in namespace "default": add -n default');
  expect((await api.requireObject(pods, "default", "db")).metadata.name).toBe("db-node1");
  await stop();
});

test.each([
  ["", []],
  ['299 - "one"', ["one"]],
  ['299 - "say \\"no\\", twice", 299 kubelet "back\\\\slash"', ['say "no", twice', "back\\slash"]],
])("warnings of the header %p", (header, want) => {
  expect(parseWarnings(header)).toEqual(want);
});
