import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { until } from "../../support/until.ts";
import { DOWNLOADED, outputOf, run } from "../install/machine.ts";

const USER = "edge";
const HOME = `/home/${USER}`;

/** Runs a shell command as the user, in the environment of a login session. */
async function asUser(command: string): Promise<{ exitCode: number; output: string }> {
  const uid = (await outputOf("id", "-u", USER)).trim();
  const environment = [
    `XDG_RUNTIME_DIR=/run/user/${uid}`,
    `DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/${uid}/bus`,
    `HOME=${HOME}`,
    `PATH=${HOME}/.local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
  ];
  return await run("runuser", "-u", USER, "--", "env", "-i", ...environment, "sh", "-c", `cd && ${command}`);
}

async function outputAsUser(command: string): Promise<string> {
  const { exitCode, output } = await asUser(command);
  if (exitCode !== 0) throw new Error(`${command}: exit code ${exitCode}: ${output}`);
  return output;
}

test("without a rootless engine install names what is missing, with the command that fixes it", async () => {
  await outputOf("useradd", "--create-home", "--shell", "/bin/sh", USER);
  await outputOf("loginctl", "enable-linger", USER);
  copyFileSync(DOWNLOADED, `${HOME}/kubelet-ts`);
  chmodSync(`${HOME}/kubelet-ts`, 0o755);
  await outputOf("chown", "-R", `${USER}:`, HOME);
  await until(
    "the manager of the user runs",
    async () => (await asUser("systemctl --user is-active basic.target")).exitCode === 0,
  );
  const { exitCode, output } = await asUser("./kubelet-ts install");
  expect([exitCode, output]).toEqual([1, expect.stringContaining("dockerd-rootless-setuptool.sh install")]);
  await outputAsUser("./kubelet-ts uninstall && rm -r ~/.config/kubelet-ts");
});

test("a user without root has a rootless engine", async () => {
  const units = `${HOME}/.config/systemd/user`;
  mkdirSync(units, { recursive: true });
  writeFileSync(
    `${units}/docker.service`,
    `[Service]
Environment=PATH=/usr/bin:/usr/sbin:/bin:/sbin
ExecStart=/usr/share/docker.io/contrib/dockerd-rootless.sh --iptables=false --ip6tables=false
Delegate=yes
[Install]
WantedBy=default.target
`,
  );
  await outputOf("chown", "-R", `${USER}:`, HOME);
  await outputAsUser("systemctl --user enable --now docker.service");
  await until(
    "the rootless engine answers",
    async () => (await asUser("DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock docker version")).exitCode === 0,
    {
      details: async () =>
        (await asUser("journalctl --user --no-pager -n 30")).output +
        (await run("journalctl", "--no-pager", "-n", "40")).output,
    },
  );
  const image = "/tmp/busybox.tar";
  await outputOf("docker", "save", "-o", image, "busybox:1.35");
  chmodSync(image, 0o644);
  await outputAsUser(`DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock docker load -i ${image}`);
});

test("without a session of the user install is an error that names the fix, and changes nothing", async () => {
  const { exitCode, output } = await asUser("XDG_RUNTIME_DIR= ./kubelet-ts install");
  expect([exitCode, output]).toEqual([1, expect.stringContaining("log in as that user")]);
  expect(existsSync(`${HOME}/.config/kubelet-ts`)).toBe(false);
});

test("install as that user starts a service of the user, which runs pods on the rootless engine", async () => {
  const output = await outputAsUser("./kubelet-ts install");
  expect(output).toContain(`${HOME}/.config/kubelet-ts/manifests`);
  await outputAsUser(`cat > ~/.config/kubelet-ts/manifests/web.yaml <<'END'
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: web
    image: busybox:1.35
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
END`);
  await until("the pod is known", async () => (await asUser("kubelet-ts get pod web")).exitCode === 0, {
    details: async () => (await run("journalctl", "--no-pager", "-n", "60")).output,
  });
  const { exitCode, output: waited } = await asUser("kubelet-ts wait pod/web --for=condition=Ready --timeout=120s");
  const explained = exitCode === 0 ? "" : (await asUser("kubelet-ts explain web")).output;
  expect(`${waited}${explained}`).toContain("condition met");
  expect((await outputAsUser("systemctl --user show -P ActiveState kubelet-ts")).trim()).toBe("active");
});

test("doctor and uninstall --pods work as that user", async () => {
  const { output } = await asUser("kubelet-ts doctor");
  expect(output.split("\n").filter((line) => line.startsWith("FAIL"))).toEqual([]);
  await outputAsUser("kubelet-ts uninstall --pods");
  expect(
    await outputAsUser(
      "DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock docker ps -aq --filter label=io.kubernetes.pod.name",
    ),
  ).toBe("");
});
