import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { type Kubectl, kubectlClients, startForKubectl } from "../support/kubectl.ts";
import { readTranscript, runTranscript } from "../support/kubectl-transcript.ts";
import { askApi } from "../support/local-api.ts";
import { batch, HOST, HOST_POD, list, object, podSpec, shell, sleeper, workload } from "../support/manifests.ts";
import { PATIENCE_MS } from "../support/until.ts";

const clients = kubectlClients();
const withClients = test.concurrent.each(clients);

interface TerminalSession {
  environment: Record<string, string>;
  /** The input is typed when this was printed. */
  until: string;
  input: string;
}

/** Runs a program in a pseudo-terminal, types into it, and waits for its end. @returns everything it printed */
async function inTerminal(argv: readonly string[], session: TerminalSession): Promise<string> {
  let text = "";
  let isTyped = false;
  const child = Bun.spawn([...argv], {
    env: { ...session.environment, TERM: "dumb" },
    terminal: {
      cols: 200,
      rows: 24,
      data(terminal, data) {
        text += Buffer.from(data).toString();
        if (isTyped || !text.includes(session.until)) return;
        isTyped = true;
        terminal.write(session.input);
      },
    },
  });
  const timer = setTimeout(() => child.kill(), PATIENCE_MS);
  await child.exited;
  clearTimeout(timer);
  child.terminal?.close();
  return text.replaceAll("\r", "");
}

const jsonPath = (kubectl: Kubectl, what: string, path: string) => kubectl.words(`get ${what} -o jsonpath={${path}}`);

describeWithEngine("kubectl", () => {
  withClients("$version edits, attaches, evicts, undoes and describes a CronJob", async (client) => {
    const node = testNode();
    node.writeManifest(
      "static.yaml",
      list(sleeper("static", {}, HOST), object("ConfigMap", "of-file", { data: { word: "old" } })),
    );
    const kubectl = await startForKubectl(node, client);
    const echo = { command: ["cat"], stdin: true, stdinOnce: true };
    await kubectl.apply(
      object("ConfigMap", "words", { data: { word: "old" } }),
      sleeper("echo", echo, { ...HOST, restartPolicy: "Never" }),
      sleeper("idle", {}, HOST),
    );

    const edit = (name: string) =>
      kubectl.run(["edit", "configmap", name], undefined, { KUBE_EDITOR: "sed -i s/old/new/" });
    expect(await edit("words")).toMatchObject({ code: 0, stdout: "configmap/words edited\n" });
    expect(await jsonPath(kubectl, "configmap words", ".data.word")).toBe("new");
    const refused = await edit("of-file");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(join(node.manifestDir, "static.yaml"))]);

    // The Deployment has no annotations: it was neither applied nor made by a controller of a cluster.
    expect(await kubectl.words("create deployment dep --image=busybox:1.35 -- sleep 1000")).toBe(
      "deployment.apps/dep created",
    );
    const rolledOut = () => kubectl.words("rollout status deployment/dep --timeout=60s");
    await rolledOut();
    const limits = () => jsonPath(kubectl, "deployment dep", ".spec.template.spec.containers[0].resources.limits");
    await kubectl.words("set resources deployment dep --limits=memory=64Mi");
    expect(await limits()).toContain("64Mi");
    await rolledOut();
    expect(await kubectl.words("rollout undo deployment/dep")).toContain("rolled back");
    expect(await limits()).toBe("");
    await kubectl.words("delete deployment dep");

    await kubectl.output([
      ..."create cronjob nightly --image=busybox:1.35".split(" "),
      "--schedule=0 3 * * *",
      "--",
      "true",
    ]);
    expect(await kubectl.words("describe cronjob nightly")).toMatch(/Schedule:\s+0 3 \* \* \*/);

    await kubectl.words("wait --for=condition=Ready pod/echo pod/idle --timeout=60s");
    expect(await kubectl.output(["attach", "-i", "echo"], "typed\n")).toContain("typed");
    await kubectl.until(
      "cat to end with its input",
      async () => (await jsonPath(kubectl, "pod echo", ".status.phase")) === "Succeeded",
    );

    const evict = async (name: string, version: string) => {
      const body = { apiVersion: `policy/${version}`, kind: "Eviction", metadata: { name } };
      const { status, json } = await askApi(node, "POST", `/api/v1/namespaces/default/pods/${name}/eviction`, body);
      return { status, message: json.message };
    };
    expect((await evict("idle", "v1")).status).toBe(201);
    expect((await evict("echo", "v1beta1")).status).toBe(201);
    for (const name of ["idle", "echo"]) await kubectl.untilGone(`pod/${name}`);
    expect(await evict(`static-${node.name}`, "v1")).toMatchObject({
      status: 403,
      message: expect.stringContaining("static.yaml"),
    });
  });

  // Any client asks the same.
  test.concurrent.each(clients.slice(0, 1))("$version reaches pods and Services by proxy", async (client) => {
    const node = testNode();
    const pages = "mkdir -p /tmp/sub; echo page > /tmp/index.html; echo inner > /tmp/sub/index.html";
    const container = { ...shell(`${pages}; exec httpd -f -p 8000 -h /tmp`), ports: [{ containerPort: 8000 }] };
    const web = sleeper("web", container, {}, { labels: { app: "web" } });
    const ports = [{ name: "http", port: 80, targetPort: 8000 }];
    node.writeManifest("web.yaml", list(web, object("Service", "web", { spec: { selector: { app: "web" }, ports } })));
    const kubectl = await startForKubectl(node, client);
    const ask = async (path: string) => {
      const { stdout, stderr } = await kubectl.run(["get", "--raw", `/api/v1/namespaces/default/${path}`]);
      return stdout + stderr;
    };
    await kubectl.until("the page", async () => (await ask("services/web/proxy/")) === "page\n");
    for (const [path, want] of [
      ["services/web:80/proxy/index.html", "page"],
      ["services/http:web:http/proxy/sub/", "inner"],
      // The server redirects it to sub/, which has to stay below the path of the proxy.
      ["services/web/proxy/sub", "inner"],
      [`pods/web-${node.name}/proxy/`, "page"],
      [`pods/web-${node.name}:8000/proxy/sub/?a=b`, "inner"],
      ["services/web:81/proxy/", 'no service port "81" found'],
      ["services/none/proxy/", "not found"],
      [`pods/web-${node.name}:81/proxy/`, "error trying to reach"],
    ] as const) {
      expect([path, await ask(path)]).toEqual([path, expect.stringContaining(want)]);
    }
  });

  withClients("$version starts a container in a pod of a file, by debug, and enters it", async (client) => {
    const node = testNode();
    node.writeManifest("web.yaml", sleeper("web"));
    const kubectl = await startForKubectl(node, client);
    const name = `web-${node.name}`;
    await kubectl.words(`wait --for=condition=Ready pod/${name} --timeout=60s`);
    const app = await node.runningContainer("app");
    const session = await inTerminal(
      [client.program, ...`debug ${name} --image=busybox:1.35 --target=app -c tools -it`.split(" ")],
      { environment: kubectl.environment, until: "# ", input: "ps; hostname; exit\n" },
    );
    // The processes of its target and the name of the pod.
    expect(session).toContain("sleep 100000");
    expect(session).toContain(`\n${name}`.slice(0, 63));
    const exitCode = ".status.ephemeralContainerStatuses[0].state.terminated.exitCode";
    await kubectl.until("its end", async () => (await jsonPath(kubectl, `pod ${name}`, exitCode)) === "0");
    expect(await kubectl.words(`logs ${name} -c tools`)).toContain("sleep 100000");
    expect((await node.runningContainer("app")).Id).toBe(app.Id);
    expect(await kubectl.words(`describe pod ${name}`)).toMatch(/Ephemeral Containers:\s+tools:/);
  });

  withClients("$version rolls, scales, undoes, restarts and deletes workloads", async (client) => {
    const node = testNode();
    const date = { image: "busybox:1.35", command: ["date"] };
    node.writeManifest("tick.yaml", batch("CronJob", "tick", { schedule: "0 0 1 1 *" }, date));
    const kubectl = await startForKubectl(node, client);
    const rolledOut = async () =>
      expect(await kubectl.words("rollout status deployment/web --timeout=60s")).toContain("successfully rolled out");
    const round = () => jsonPath(kubectl, "deployment web", ".spec.template.spec.containers[0].env[0].value");
    const pods = async () => (await kubectl.words("get pods -l app=web -o name")).split("\n").sort();
    const web = workload("Deployment", "web", { replicas: 2 }, HOST_POD);

    expect(await kubectl.apply(web)).toBe("deployment.apps/web created");
    await rolledOut();
    expect(await kubectl.words("get deployment web")).toMatch(/web\s+2\/2\s+2\s+2\s/);
    await kubectl.words("scale deployment/web --replicas=1");
    await kubectl.until("one pod", async () => (await pods()).length === 1);
    await kubectl.words("set env deployment/web ROUND=2");
    await rolledOut();
    expect(await kubectl.words("rollout history deployment/web")).toMatch(/1 .*\n2 /);
    expect(await round()).toBe("2");
    await kubectl.words("rollout undo deployment/web");
    await rolledOut();
    expect(await round()).toBe("");
    await kubectl.words("rollout restart deployment/web");
    await rolledOut();

    // kubectl 1.20 knows CronJob of batch/v1beta1 only.
    if (client.version.startsWith("v1.20")) await kubectl.apply(batch("Job", "manual", {}, date));
    else await kubectl.words("create job manual --from=cronjob/tick");
    await kubectl.words("wait --for=condition=Complete job/manual --timeout=60s");
    expect((await kubectl.run(["delete", "cronjob", "tick"])).code).not.toBe(0);

    const before = await kubectl.until("the pods of former revisions to be gone", async () => {
      const found = await pods();
      return found.length === 1 && found;
    });
    // Another template would replace the pods: that of the restart has an annotation more than the first one.
    const { spec } = await kubectl.json("get deployment web");
    await kubectl.words("delete deployment/web --cascade=orphan");
    await kubectl.apply({ ...web, spec: { ...web.spec, template: spec.template } });
    await rolledOut();
    expect(await pods()).toEqual(expect.arrayContaining(before));

    await kubectl.apply(batch("Job", "brief", { ttlSecondsAfterFinished: 0 }, date));
    await kubectl.untilGone("job/brief");
    await kubectl.words("delete deployment/web --cascade=foreground --timeout=60s");
    await kubectl.words("delete job/manual");
    await node.untilEmpty();
    expect(await kubectl.words("get replicasets -o name")).toBe("");
  });
});

describeWithEngine("labels of a workload's pod are changed", () => {
  test.concurrent.each(["Deployment", "StatefulSet"])(
    "of a %s: it is released, another takes its place, and it is adopted again",
    async (kind) => {
      const node = testNode();
      node.writeManifest("web.yaml", workload(kind, "web", { replicas: 1 }, podSpec(shell("sleep 1000"), HOST)));
      const kubectl = await startForKubectl(node, clients[0]!);
      const containers = async () => (await node.running("app")).map(({ Id }) => Id);
      const pods = async (selector = "app=web") =>
        (await kubectl.words(`get pods -l ${selector} -o name`)).split("\n").filter(Boolean);
      const [pod] = await kubectl.until("a pod", async () => (await containers()).length === 1 && (await pods()));
      const [container] = await containers();
      const owner = async () => (await kubectl.json(`get ${pod}`)).metadata.ownerReferences?.[0]?.kind;
      await kubectl.words(`label ${pod} debug=yes`);
      await kubectl.words(`annotate ${pod} note=mine`);
      expect(await pods("debug=yes,app=web")).toEqual([pod!]);
      await kubectl.words(`label ${pod} app-`);
      await kubectl.until("it is released", async () => (await owner()) === undefined);
      const isNamed = kind === "StatefulSet";
      // The name of a StatefulSet's pod is taken until the released one is deleted.
      if (!isNamed) await kubectl.until("another pod", async () => (await containers()).length === 2);
      expect(await containers()).toContain(container!);
      await kubectl.words(`label ${pod} app=web`);
      const controller = kind === "Deployment" ? "ReplicaSet" : kind;
      await kubectl.until("it is adopted", async () => (await owner()) === controller);
      // The younger one of two is deleted.
      await kubectl.until("the first container alone", async () => String(await containers()) === container);
      await kubectl.words(`label ${pod} app-`);
      await kubectl.words(`delete ${pod}`);
      await kubectl.until("a pod of the controller", async () => {
        const [other, ...more] = await containers();
        return other !== undefined && other !== container && more.length === 0 && (await pods()).length === 1;
      });
    },
  );
});

/** Client and server of the recording. */
const RECORDED = kubectlClients().filter(({ version }) => version.startsWith("v1.20.2"));

describeWithEngine("kubectl prints what it prints against kube-apiserver", () => {
  test.concurrent.each(RECORDED)("$version", async (client) => {
    const kubectl = await startForKubectl(testNode(), client);
    expect(await runTranscript(client.program, kubectl.environment)).toEqual(await readTranscript());
  });
});
