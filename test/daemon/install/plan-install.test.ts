import { describe, expect, test } from "bun:test";
import { installPaths, isUnedited, renderUnit, withChecksum } from "../../../src/daemon/install/install-files.ts";
import {
  type InstallPlan,
  type InstallState,
  type InstallStep,
  planInstall,
  planRollback,
  planUninstall,
  renderService,
} from "../../../src/daemon/install/plan-install.ts";

const paths = installPaths("systemd", "/root");
const NEW: InstallState = {
  manager: "systemd",
  paths,
  ownHash: "b",
  program: "/tmp/kubelet-ts",
  rootDir: "/var/lib/kubelet",
  dockerEndpoint: undefined,
  installedHash: undefined,
  unit: undefined,
  hasConfig: false,
  hasManifestDir: false,
  hasPrevious: false,
  canStart: true,
  isLingering: false,
};
const INSTALLED: InstallState = {
  ...NEW,
  installedHash: "b",
  unit: renderService("systemd", paths),
  hasConfig: true,
  hasManifestDir: true,
};

const uninstall = (...given: Parameters<typeof planUninstall>) => planUninstall(...given) as InstallPlan;

const shown = (steps: readonly InstallStep[]) =>
  steps.map((step) =>
    "argv" in step ? step.argv.join(" ") : `${step.kind} ${"path" in step ? step.path : `${step.from} ${step.to}`}`,
  );

const START = [
  "systemctl daemon-reload",
  "systemctl enable kubelet-ts.service",
  "systemctl restart kubelet-ts.service",
];

describe("install", () => {
  test("on a new machine", () => {
    expect(shown(planInstall(NEW).steps)).toEqual([
      "directory /usr/local/bin",
      "copy-self /usr/local/bin/kubelet-ts",
      "directory /etc/kubernetes/manifests",
      "directory /etc/kubelet-ts",
      "write /etc/kubelet-ts/config.yaml",
      "directory /etc/systemd/system",
      "write /etc/systemd/system/kubelet-ts.service",
      ...START,
    ]);
  });

  test("the first one names the web page; again changes no file", () => {
    expect(planInstall(NEW).notes).toEqual(["A link to the web page of this node: sudo kubelet-ts page"]);
    expect(planInstall({ ...NEW, canStart: false }).notes).toEqual([]);
    const { steps, notes, scratch } = planInstall(INSTALLED);
    expect([shown(steps), notes, scratch]).toEqual([START, [], undefined]);
  });

  test("an upgrade keeps the binary before it, and nothing else is touched", () => {
    const { steps, notes, scratch } = planInstall({ ...INSTALLED, installedHash: "a" });
    expect(shown(steps)).toEqual([
      "directory /usr/local/lib/kubelet-ts",
      "copy-self /usr/local/bin/kubelet-ts.new",
      `keep /usr/local/bin/kubelet-ts ${paths.previousBinary}`,
      "move /usr/local/bin/kubelet-ts.new /usr/local/bin/kubelet-ts",
      ...START,
    ]);
    expect(notes.join()).toContain("--rollback");
    expect(scratch).toEqual(["/usr/local/bin/kubelet-ts.new"]);
  });

  test("an edited unit stays, and the new one is written next to it; an older one that was not edited is replaced", () => {
    const { steps, notes } = planInstall({ ...INSTALLED, unit: `${INSTALLED.unit}Nice=5\n` });
    expect(shown(steps)[1]).toBe("write /etc/systemd/system/kubelet-ts.service.new");
    expect(notes).toEqual([`${paths.unit} was edited and is left as it is; the new one is ${paths.unit}.new`]);
    const old = planInstall({ ...INSTALLED, unit: withChecksum("[Unit]\nDescription=old\n") });
    expect(shown(old.steps)).toContain(`write ${paths.unit}`);
  });

  test("a user's service lies below the home directory", () => {
    const state: InstallState = { ...NEW, manager: "systemd-user", paths: installPaths("systemd-user", "/home/ann") };
    const others = shown(planInstall(state).steps).filter((step) => !/^systemctl --user|\/home\/ann\//.test(step));
    expect(others).toEqual([]);
  });

  test("OpenRC", () => {
    const { steps } = planInstall({ ...NEW, manager: "openrc", paths: installPaths("openrc", "/root") });
    expect(shown(steps).slice(-3)).toEqual([
      "write /etc/init.d/kubelet-ts",
      "rc-update add kubelet-ts default",
      "rc-service kubelet-ts restart",
    ]);
    expect(steps.find((step) => step.kind === "write" && step.path === "/etc/init.d/kubelet-ts")).toMatchObject({
      mode: 0o755,
      text: expect.stringMatching(/^#!\/sbin\/openrc-run\n# Installed by/),
    });
  });
});

test("a rollback swaps the two binaries; after an upgrade that left none it puts the earlier one back", () => {
  const stepsOf = (state: InstallState) => {
    const plan = planRollback({ ...state, hasPrevious: true });
    return "steps" in plan && shown(plan.steps);
  };
  expect(stepsOf(INSTALLED)).toEqual([
    `keep ${paths.binary} ${paths.previousBinary}.swap`,
    `move ${paths.previousBinary} ${paths.binary}`,
    `move ${paths.previousBinary}.swap ${paths.previousBinary}`,
    ...START,
  ]);
  const back = [`move ${paths.previousBinary} ${paths.binary}`, ...START];
  expect(stepsOf({ ...INSTALLED, installedHash: undefined })).toEqual(back);
  expect(planRollback(INSTALLED)).toEqual({ problem: `${paths.previousBinary}: there is no earlier binary` });
});

test("uninstall below another directory runs nothing on this machine, with --pods neither", () => {
  const { steps } = uninstall({ ...INSTALLED, canStart: false }, true);
  expect(steps.filter(({ kind }) => kind !== "remove")).toEqual([]);
});

test("install below another directory enables the service, and uninstall takes that back", () => {
  const off = { ...INSTALLED, canStart: false };
  const link = { kind: "link" as const, path: paths.enabling, to: paths.unit };
  expect(planInstall(off).steps.at(-1)).toEqual(link);
  expect(shown(uninstall(off, false).steps)).toContain(`remove ${paths.enabling}`);
});

test("a program that no installation put there is left alone", () => {
  const stranger = { ...INSTALLED, installedHash: "other", unit: undefined };
  expect(planUninstall(stranger, false)).toEqual({ problem: expect.stringContaining("was not installed by") });
  expect(planUninstall({ ...stranger, unit: "[Unit]\n" }, false)).toHaveProperty("problem");
  for (const known of [{ unit: INSTALLED.unit }, { hasPrevious: true }, { installedHash: "b" }]) {
    expect(planUninstall({ ...stranger, ...known }, false)).toHaveProperty("steps");
  }
});

test("uninstall --pods stops the pods that an earlier uninstall left, and nothing else", () => {
  const { steps, notes } = uninstall({ ...NEW, dockerEndpoint: "unix:///e.sock" }, true);
  expect(shown(steps)).toEqual([
    "/tmp/kubelet-ts delete --all --root-dir=/var/lib/kubelet --docker-endpoint=unix:///e.sock",
  ]);
  expect(notes).toEqual(["kubelet-ts was not installed; its pods are stopped"]);
});

test("uninstall leaves pods, configuration and manifests alone unless asked", () => {
  const { steps, notes } = uninstall(INSTALLED, false);
  expect(shown(steps)).toEqual([
    "systemctl disable --now kubelet-ts.service",
    `remove ${paths.unit}`,
    `remove ${paths.unit}.new`,
    `remove ${paths.binary}`,
    `remove ${paths.previousBinary}`,
    "systemctl daemon-reload",
  ]);
  expect(notes[0]).toContain("rules of Services, if there are any, stay");
  expect(shown(uninstall(INSTALLED, true).steps)[1]).toBe("/tmp/kubelet-ts delete --all --root-dir=/var/lib/kubelet");
});

test.each([
  ["as written", (text: string) => text, true],
  ["a line more", (text: string) => `${text}Nice=5\n`, false],
  ["a line changed", (text: string) => text.replace("Restart=always", "Restart=no"), false],
  ["written by hand", () => "[Unit]\nDescription=mine\n", false],
  ["empty", () => "", false],
])("a unit file %s: unedited %p", (_, edit, want) => {
  expect(isUnedited(edit(renderUnit(paths, false)))).toBe(want);
});

test("the unit of a user names the rootless engine, and the way to keep the service after logout", () => {
  const paths = installPaths("systemd-user", "/home/edge");
  const state: InstallState = { ...NEW, manager: "systemd-user", paths };
  const { steps, notes } = planInstall(state);
  const unit = steps.find((step) => step.kind === "write" && step.path === paths.unit);
  expect(unit).toMatchObject({ text: expect.stringContaining("Environment=DOCKER_HOST=unix://%t/docker.sock") });
  expect(notes.join()).toContain("loginctl enable-linger");
  expect(planInstall({ ...state, isLingering: true }).notes.join()).not.toContain("loginctl");
});
