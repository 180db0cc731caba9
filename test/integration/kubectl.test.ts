import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients, startForKubectl } from "../support/kubectl.ts";
import { askApi, startWithApi } from "../support/local-api.ts";
import { object, STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import { until } from "../support/until.ts";

const withClients = test.concurrent.each(kubectlClients());

const greeting = (word: string) => object("ConfigMap", "words", { data: { greeting: word } });
const web = sleeper(
  "web",
  {
    ...shell(`echo $GREETING; ${STOPPABLE}`),
    image: "busybox:1.35",
    env: [{ name: "GREETING", valueFrom: { configMapKeyRef: { name: "words", key: "greeting" } } }],
  },
  {},
  { labels: { app: "web" } },
);

describeWithEngine("the local Kubernetes API", () => {
  withClients("kubectl $version submits, reads, changes and deletes", async (client) => {
    const node = testNode();
    node.writeManifest("static.yaml", sleeper("static"));
    const kubectl = await startForKubectl(node, client);
    expect(await kubectl.apply(greeting("hello"), web)).toBe("configmap/words created\npod/web created");
    await kubectl.words("wait --for=condition=Ready pod/web --timeout=60s");
    const [header, row] = (await kubectl.words("get pod web")).split("\n");
    expect(header?.split(/\s{2,}/)).toEqual(["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    expect(row?.split(/\s+/).slice(0, 4)).toEqual(["web", "1/1", "Running", "0"]);
    // The pod runs under the name it was given, from a file that can be read.
    const file = join(node.rootDir, "manifests", "default", "pod-web.yaml");
    expect(readFileSync(file, "utf8")).toContain("image: busybox:1.35");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await kubectl.words("get pods -o name")).toContain(`pod/static-${node.name}`);

    expect(await kubectl.apply(greeting("hello"), web)).toBe("configmap/words unchanged\npod/web unchanged");
    expect(await kubectl.words("describe pod web")).toMatch(/Started\s.*kubelet\s+Started container app/);
    expect(await kubectl.words("get events --field-selector involvedObject.name=web,reason=Started")).toContain(
      "pod/web",
    );
    expect(await kubectl.words("get nodes")).toMatch(new RegExp(`${node.name}\\s+Ready`));

    const refused = await kubectl.run(["delete", "pod", `static-${node.name}`]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`comes from ${join(node.manifestDir, "static.yaml")}`);

    // A change that Kubernetes forbids and this node can do.
    await kubectl.words("set image pod/web app=busybox:1.35.0").catch(() => {});
    expect(await kubectl.words("create namespace lab")).toBe("namespace/lab created");
    await kubectl.words("run once --image=busybox:1.35 --restart=Never -n lab -- true");
    const phase = () => kubectl.words("get pod once -n lab -o jsonpath={.status.phase}");
    await until("the pod of the namespace completes", async () => (await phase()) === "Succeeded");
    await kubectl.words("delete namespace lab");
    expect(existsSync(join(node.rootDir, "manifests", "lab"))).toBe(false);

    expect(await kubectl.words("delete pod web")).toContain('pod "web" deleted');
    expect(existsSync(file)).toBe(false);
    expect((await kubectl.run(["get", "pod", "web"])).stderr).toContain(
      'Error from server (NotFound): pods "web" not found',
    );
  });

  withClients("kubectl $version reads logs, enters containers, copies, forwards ports and measures", async (client) => {
    const node = testNode();
    const kubectl = await startForKubectl(node, client);
    await kubectl.apply(greeting("hello"), web);
    await kubectl.words("wait --for=condition=Ready pod/web --timeout=60s");
    await until("the container has written", async () => (await kubectl.words("logs web")) === "hello");
    expect(await kubectl.words("logs web --tail=1 --timestamps")).toMatch(/^\d{4}-.*Z hello$/);

    const failed = await kubectl.run(["exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    expect([failed.code, failed.stdout]).toEqual([3, "out\n"]);
    expect(failed.stderr).toContain("err\n");
    expect(await kubectl.output(["exec", "-i", "web", "--", "cat"], "typed")).toBe("typed");
    expect((await kubectl.run(["exec", "web", "--", "no-such-program"])).code).not.toBe(0);

    // Larger than every buffer between client and container.
    const original = Buffer.alloc(3_000_000, 0).map((_, index) => (index * 31) % 251);
    const there = join(node.directory, "there");
    const back = join(node.directory, "back");
    writeFileSync(there, original);
    await kubectl.words(`cp ${there} web:/tmp/copy`);
    await kubectl.words(`cp web:/tmp/copy ${back}`);
    expect(Bun.hash(readFileSync(back))).toBe(Bun.hash(original));

    const serve = "echo pong > /tmp/index.html; httpd -p 8080 -h /tmp";
    await kubectl.output(["exec", "web", "--", "sh", "-c", serve]);
    // A port that it finds itself.
    const forwarder = kubectl.spawn(["port-forward", "pod/web", ":8080"]);
    try {
      const { value } = await forwarder.stdout.getReader().read();
      const [, port] = /127\.0\.0\.1:(\d+)/.exec(new TextDecoder().decode(value)) ?? [];
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("pong\n");
    } finally {
      forwarder.kill();
    }

    await until("pods are measured", async () => /web\s+\d+m\s+\d+Mi/.test(await kubectl.words("top pod")));
    expect(await kubectl.words("top node")).toContain(node.name);
    expect(await kubectl.words("auth can-i delete pods")).toBe("yes");
    expect(await kubectl.words("explain pod.spec.containers")).toContain("imagePullPolicy");
    const summary = await kubectl.words(`get --raw /api/v1/nodes/${node.name}/proxy/stats/summary`);
    expect(JSON.parse(summary).node.nodeName).toBe(node.name);
  });

  test.concurrent("the port, the socket and who has access", async () => {
    const node = testNode();
    const tokens = join(node.directory, "tokens.csv");
    writeFileSync(
      tokens,
      'secret-admin,ann,1,"system:masters"\nsecret-viewer,vic,2\nsecret-metrics,prom,3,system:monitoring\n',
      { mode: 0o600 },
    );
    const { port } = await startWithApi(node, [`--token-auth-file=${tokens}`, "--local-api-address=127.0.0.1"]);
    expect(statSync(join(node.rootDir, "api.sock")).mode & 0o777).toBe(0o600);
    expect(statSync(join(node.rootDir, "admin.conf")).mode & 0o777).toBe(0o600);
    const secrets = "/api/v1/namespaces/default/secrets";
    const secret = object("Secret", "s", { stringData: { key: "hunter2" } });
    expect((await askApi(node, "POST", secrets, secret)).status).toBe(201);

    const over = async (path: string, token?: string, method = "GET") => {
      const response = await fetch(`https://127.0.0.1:${port}${path}`, {
        method,
        tls: { ca: readFileSync(join(node.rootDir, "apiserver", "ca.crt"), "utf8") },
        ...(token !== undefined && { headers: { Authorization: `Bearer ${token}` } }),
      });
      return { status: response.status, text: await response.text() };
    };
    const encoded = Buffer.from("hunter2").toString("base64");
    expect((await over(`${secrets}/s`, "secret-admin")).text).toContain(encoded);
    const viewed = await over(`${secrets}/s`, "secret-viewer");
    expect([viewed.status, viewed.text.includes(encoded), viewed.text.includes("hunter2")]).toEqual([
      200,
      false,
      false,
    ]);
    expect((await over(`${secrets}/s`, "secret-viewer", "DELETE")).status).toBe(403);
    for (const token of ["wrong", "secret-admi", "secret-admin2"]) {
      const answer = await over("/version", token);
      expect([answer.status, JSON.parse(answer.text).message]).toEqual([401, "Unauthorized"]);
    }
    for (const path of ["/healthz", "/livez", "/readyz", "/version"]) {
      expect([path, (await over(path)).status]).toEqual([path, 200]);
    }
    expect([(await over("/api")).status, (await over(secrets)).status]).toEqual([401, 401]);
    const proxy = `/api/v1/nodes/${node.name}/proxy`;
    for (const path of ["metrics", "metrics/cadvisor", "metrics/resource", "stats/summary"]) {
      expect([path, (await over(`${proxy}/${path}`, "secret-metrics")).status]).toEqual([path, 200]);
    }
    for (const path of [`${proxy}/pods`, `${proxy}/metrics/..%2fpods`, "/api/v1/pods", `${secrets}/s`]) {
      expect([path, (await over(path, "secret-metrics")).status]).toEqual([path, 403]);
    }
    // At rest only our user can read it, and no other port returns it.
    expect(statSync(join(node.rootDir, "manifests", "default", "secret-s.yaml")).mode & 0o777).toBe(0o600);
    const pods = await fetch(`http://127.0.0.1:${node.readOnlyPort}/pods`).then((response) => response.text());
    expect(pods).not.toContain(encoded);
  });

  test.concurrent("files that are added, edited and removed by hand are objects; a file with an error changes nothing", async () => {
    const node = testNode();
    await startWithApi(node);
    const directory = join(node.rootDir, "manifests", "default");
    mkdirSync(directory, { recursive: true });
    const file = join(directory, "anything.yaml");
    const manifest = (value: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hand}\ndata: {key: ${value}}\n`;
    const path = "/api/v1/namespaces/default/configmaps/hand";
    const value = async () => (await askApi(node, "GET", path)).json?.data?.key;
    writeFileSync(file, manifest("one"));
    await until("the file is an object", async () => (await value()) === "one");
    const { uid, resourceVersion } = (await askApi(node, "GET", path)).json.metadata;
    writeFileSync(file, manifest("two"));
    await until("the edit is seen", async () => (await value()) === "two");
    const after = (await askApi(node, "GET", path)).json.metadata;
    expect(after.uid).toBe(uid);
    expect(Number(after.resourceVersion)).toBeGreaterThan(Number(resourceVersion));
    writeFileSync(file, "apiVersion: v1\nkind: [");
    await Bun.sleep(300);
    expect(await value()).toBe("two");
    writeFileSync(file, manifest("three"));
    await until("it is good again", async () => (await value()) === "three");
    // A client's change goes into that file.
    await askApi(node, "PATCH", path, { data: { key: "four" } }, "application/merge-patch+json");
    expect(readFileSync(file, "utf8")).toContain("key: four");
    rmSync(file);
    await until("the object goes with its file", async () => (await askApi(node, "GET", path)).status === 404);
  });

  test.concurrent("pods, revisions and objects survive a kill of the process", async () => {
    const node = testNode();
    const { child, port } = await startWithApi(node);
    const pods = "/api/v1/namespaces/default/pods";
    await askApi(node, "POST", pods, sleeper("web"));
    const running = await node.runningContainer("app");
    const before = (await askApi(node, "GET", `${pods}/web`)).json;
    await child.kill();
    await startWithApi(node, [], port);
    await until(
      "the pod is known again",
      async () => (await askApi(node, "GET", `${pods}/web`)).json?.status?.phase === "Running",
    );
    const after = (await askApi(node, "GET", `${pods}/web`)).json;
    expect([after.metadata.uid, after.metadata.creationTimestamp]).toEqual([
      before.metadata.uid,
      before.metadata.creationTimestamp,
    ]);
    expect(Number(after.metadata.resourceVersion)).toBeGreaterThan(Number(before.metadata.resourceVersion));
    expect((await node.runningContainer("app")).Id).toBe(running.Id);
    // A watch of the process before has to list again.
    const { resourceVersion } = before.metadata;
    const watch = await fetch(`http://x${pods}?watch=true&resourceVersion=${resourceVersion}`, {
      unix: join(node.rootDir, "api.sock"),
    });
    expect(await watch.text()).toContain('"code":410');
    await askApi(node, "DELETE", `${pods}/web`);
    await until("the pod goes", async () => (await askApi(node, "GET", `${pods}/web`)).status === 404);
    await node.untilEmpty();
  });
});
