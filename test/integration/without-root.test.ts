import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { BINARY } from "../support/kubelet-process.ts";
import { list, object, shell, sleeper } from "../support/manifests.ts";
import { isRoot } from "../support/temp-dir.ts";
import { engineSocketPath } from "../support/test-node.ts";

const USER = 64_321;

const volumeMounts = ["config", "login", "scratch"].map((name) => ({ name, mountPath: `/${name}` }));

const script = [
  "cat /config/greeting /login/password /one; echo; touch /scratch/x; ls /scratch",
  "grep -v '^$' /etc/resolv.conf; tail -1 /etc/hosts",
].join("; ");

const MANIFEST = list(
  object("ConfigMap", "config", { data: { greeting: "hello" } }),
  object("Secret", "login", { stringData: { password: "not-a-real-one" } }),
  sleeper(
    "plain",
    { ...shell(script), volumeMounts: [...volumeMounts, { name: "config", mountPath: "/one", subPath: "greeting" }] },
    {
      restartPolicy: "Never",
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["192.0.2.53"], searches: ["example.com"], options: [{ name: "ndots", value: "3" }] },
      hostAliases: [{ ip: "192.0.2.10", hostnames: ["backend"] }],
      volumes: [
        { name: "config", configMap: { name: "config" } },
        { name: "login", secret: { secretName: "login" } },
        { name: "scratch", emptyDir: {} },
      ],
    },
  ),
);

const inM = { volumeMounts: [{ name: "m", mountPath: "/m" }] };
const REFUSED = list(
  sleeper("memory", inM, { volumes: [{ name: "m", emptyDir: { medium: "Memory" } }] }),
  sleeper("group", inM, { volumes: [{ name: "m", emptyDir: {} }], securityContext: { fsGroup: 3000 } }),
);

describeWithEngine("a kubelet without root, which may use the engine", () => {
  const node = testNode();

  /** `--runonce` by a user that is only in the socket's group. */
  async function runOnce(file: string, manifest: object) {
    const path = node.writeManifest(file, manifest);
    // Where the program lies it may be root's alone, as in /root.
    const copy = join(node.directory, "kubelet-ts");
    copyFileSync(BINARY, copy);
    chmodSync(copy, 0o755);
    Bun.spawnSync(["chown", "-R", String(USER), node.directory]);
    const user = ["setpriv", `--reuid=${USER}`, `--regid=${statSync(engineSocketPath()).gid}`, "--clear-groups"];
    const prefix = [...user, "sh", "-c", `shift; exec ${copy} "$@"`, "sh"];
    return await node.spawn(["--runonce", ...node.identityFlags(), path], { prefix }).finished();
  }

  test.if(isRoot)("runs pods with files, DNS and hosts of their own", async () => {
    const { exitCode, stdout, stderr } = await runOnce("plain.yaml", MANIFEST);
    expect(stdout + stderr).toContain("not running as root");
    expect(exitCode).toBe(0);
    const [app] = await node.containers("app");
    expect((await node.logs(app?.Id ?? "")).split("\n")).toEqual([
      "hellonot-a-real-onehello",
      "x",
      "search example.com",
      "nameserver 192.0.2.53",
      "options ndots:3",
      "192.0.2.10\tbackend",
      "",
    ]);
    expect(readdirSync(join(node.directory, "log-containers"))).toHaveLength(1);
  });

  test.if(isRoot)("names root as what a pod needs that it cannot run", async () => {
    const { exitCode, stdout, stderr } = await runOnce("refused.yaml", REFUSED);
    expect(exitCode).toBe(1);
    expect(stdout + stderr).toContain("emptyDir with medium Memory needs a kubelet that runs as root and can mount");
    expect(stdout + stderr).toContain("cannot give the volume to fsGroup 3000: it takes a kubelet that runs as root");
  });
});
