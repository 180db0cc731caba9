import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Credentials } from "../../../src/cluster/client/credentials.ts";
import { proxyFor } from "../../../src/sources/proxy.ts";
import { toKubeconfig } from "../../support/cluster/empty-cluster.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const newDirectory = tempDirs();

function aKubeconfig(cluster: object, user: object): string {
  const path = join(newDirectory(), "kubeconfig");
  writeFileSync(path, toKubeconfig({ server: "https://api.example.com:6443", ...cluster }, user));
  return path;
}

test.each([
  { what: "none", cluster: {}, env: {}, want: undefined },
  { what: "HTTPS_PROXY", cluster: {}, env: { HTTPS_PROXY: "http://p:1" }, want: "http://p:1" },
  { what: "NO_PROXY", cluster: {}, env: { HTTPS_PROXY: "http://p:1", NO_PROXY: "example.com" }, want: undefined },
  {
    what: "proxy-url before HTTPS_PROXY",
    cluster: { "proxy-url": "http://q:2" },
    env: { HTTPS_PROXY: "http://p:1" },
    want: "http://q:2",
  },
  {
    what: "none on loopback",
    cluster: { server: "https://127.0.0.1:6443" },
    env: { HTTPS_PROXY: "http://p:1" },
    want: undefined,
  },
])("the proxy to the API server: $what", async ({ cluster, env, want }) => {
  const path = aKubeconfig(cluster, { token: "t" });
  const credentials = new Credentials(path, new FakeClock(), (url) => proxyFor(url, env));
  expect((await credentials.current()).proxy).toBe(want as never);
});

test("a token file that is replaced is taken over", async () => {
  const tokenFile = join(newDirectory(), "token");
  writeFileSync(tokenFile, "first\n");
  const clock = new FakeClock();
  const credentials = new Credentials(aKubeconfig({}, { tokenFile }), clock, () => undefined);
  expect((await credentials.current()).headers.Authorization).toBe("Bearer first");
  writeFileSync(tokenFile, "second\n");
  await clock.advance(120_000);
  expect((await credentials.current()).headers.Authorization).toBe("Bearer second");
});
