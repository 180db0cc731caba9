import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { routeLogDirectory } from "../../src/server/authenticated-routes.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { aRequest, localLogDirectory } from "./a-context.ts";

const temp = tempDirs();

/** A log directory, and a file next to it. */
function aDirectory() {
  const outside = temp();
  const root = join(outside, "log");
  mkdirSync(join(root, "pods", "a b"), { recursive: true });
  writeFileSync(join(outside, "secret"), "secret");
  writeFileSync(join(root, "syslog"), "a line\n".repeat(20_000));
  writeFileSync(join(root, "page.html"), "<script>");
  symlinkSync("syslog", join(root, "link"));
  symlinkSync("../secret", join(root, "out"));
  symlinkSync(outside, join(root, "away"));
  Bun.spawnSync(["mkfifo", join(root, "pipe")]);
  utimesSync(join(root, "syslog"), 0, 1_795_248_000);
  return localLogDirectory(root);
}

async function ask(target: string, method = "GET") {
  const request = { ...aRequest(target, { method }), shown: undefined, isSecure: false, upgrade: "" };
  const answer = await routeLogDirectory(request, aDirectory());
  if ("run" in answer) throw new Error("a WebSocket");
  let text = "";
  if ("chunks" in answer) for await (const chunk of answer.chunks) text += Buffer.from(chunk).toString();
  else text = String(answer.body);
  return { status: answer.status, headers: answer.headers, text };
}

test("a directory is a list (oracle 97)", async () => {
  const { status, headers, text } = await ask("/logs/");
  expect({ status, type: headers["Content-Type"] }).toEqual({ status: 200, type: "text/html; charset=utf-8" });
  const names = ["away", "link", "out", "page.html", "pipe", "pods/", "syslog"];
  expect(text).toBe(`<pre>\n${names.map((name) => `<a href="${name}">${name}</a>\n`).join("")}</pre>\n`);
  expect((await ask("/logs/pods/")).text).toBe('<pre>\n<a href="a%20b/">a b/</a>\n</pre>\n');
});

test("a file is text, whatever its name", async () => {
  const { status, headers, text } = await ask("/logs/syslog");
  expect(status).toBe(200);
  expect(headers).toEqual({
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Length": "140000",
    "Last-Modified": "Sat, 21 Nov 2026 08:00:00 GMT",
  });
  expect(text).toBe("a line\n".repeat(20_000));
  expect((await ask("/logs/page.html")).headers["Content-Type"]).toBe("text/plain; charset=utf-8");
  expect(await ask("/logs/syslog", "HEAD")).toMatchObject({ status: 200, text: "" });
  expect((await ask("/logs/link")).text).toHaveLength(140_000);
});

test.each([
  "/logs/none",
  "/logs/out",
  "/logs/away",
  "/logs/away/secret",
  "/logs/pipe",
  "/logs/../secret",
  "/logs/syslog/x",
])("missing paths: %s", async (target) => {
  expect(await ask(target)).toMatchObject({ status: 404, text: "404 page not found\n" });
});

test.each([
  ["/logs/pods", "pods/"],
  ["/logs/pods/a b", "a%20b/"],
  ["/logs/syslog/", "../syslog"],
])("%s leads to %s", async (target, location) => {
  expect(await ask(target)).toMatchObject({ status: 301, headers: { Location: location } });
});

test("nothing can be written", async () => {
  expect((await ask("/logs/syslog", "PUT")).status).toBe(405);
});
