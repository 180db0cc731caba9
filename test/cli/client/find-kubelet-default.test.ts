import { expect, test } from "bun:test";
import { join } from "node:path";
import { chooseRootDir, defaultContextPath, writeDefaultContext } from "../../../src/cli/client/find-kubelet.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("a flag wins over the environment, the environment over the choice of the user", () => {
  const environment: NodeJS.ProcessEnv = { HOME: tempDir() };
  const path = defaultContextPath(environment);
  expect(path).toBe(join(environment.HOME!, ".config", "kubelet-ts", "root-dir"));
  expect(chooseRootDir(undefined, environment)).toBeUndefined();
  writeDefaultContext("/srv/a", path);
  expect(chooseRootDir(undefined, environment)).toEqual({ rootDir: "/srv/a", origin: "kubelet-ts use" });
  environment.KUBELET_TS_ROOT_DIR = "/srv/b";
  expect(chooseRootDir(undefined, environment)?.rootDir).toBe("/srv/b");
  expect(chooseRootDir("/srv/c", environment)).toEqual({ rootDir: "/srv/c", origin: "--root-dir" });
  writeDefaultContext(undefined, path);
  expect(chooseRootDir(undefined, { HOME: environment.HOME })).toBeUndefined();
});
