import { expect, test } from "bun:test";
import { explainState, serviceEnvironment } from "../../../src/daemon/install/run-install.ts";

const ACTIVE = { ActiveState: "active", UnitFileState: "enabled", ExecMainStatus: "0" };

test.each([
  [ACTIVE, undefined],
  [{}, undefined],
  [{ ...ACTIVE, ActiveState: "activating" }, undefined],
  [{ ...ACTIVE, ActiveState: "failed", ExecMainStatus: "2" }, /failed with exit code 2 \(invalid settings\)/],
  [{ ...ACTIVE, ActiveState: "inactive" }, /is stopped/],
  [{ ...ACTIVE, UnitFileState: "disabled" }, /does not start with the machine: it is disabled/],
])("a unit in the state %j", (state, expected) => {
  const problem = explainState("systemd", state);
  if (expected === undefined) expect(problem).toBeUndefined();
  else expect(problem?.text).toMatch(expected);
});

test("the command that corrects a service of a user names it", () => {
  expect(explainState("systemd-user", { ...ACTIVE, ActiveState: "inactive" })?.fix).toBe(
    "systemctl --user start kubelet-ts",
  );
});

test("a service does not see the DOCKER_HOST of the shell; that of a user has the rootless engine", () => {
  const own = { DOCKER_HOST: "tcp://elsewhere", XDG_RUNTIME_DIR: "/run/user/7" };
  expect(serviceEnvironment("systemd", own).DOCKER_HOST).toBeUndefined();
  expect(serviceEnvironment("systemd-user", own).DOCKER_HOST).toBe("unix:///run/user/7/docker.sock");
});
