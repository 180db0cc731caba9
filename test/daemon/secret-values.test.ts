import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SECRET_FROM_ANNOTATION } from "../../src/base/api/annotations.ts";
import type { DesiredState } from "../../src/base/model/desired-pod.ts";
import { SecretValues } from "../../src/daemon/secret-values.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const temp = tempDirs();

test("a file that is written between the first read and its watch is not missed", async () => {
  const file = join(temp(), "password");
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let reads = 0;
  const values = new SecretValues({
    logger: new RecordingLogger(),
    credentialsDir: undefined,
    readBytes: async () => {
      if (reads++ > 0) return readFileSync(file);
      writeFileSync(file, "late");
      throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
    },
    publish: ({ secrets }) => resolve(secrets.get("default/db")?.data?.password),
  });
  const metadata = { name: "db", annotations: { [SECRET_FROM_ANNOTATION]: `password=file:${file}` } };
  const secrets = new Map([["default/db", { metadata, type: "Opaque" }]]);
  values.setDesired({ pods: [], configMaps: new Map(), secrets } as DesiredState, true);
  expect(await promise).toBe(btoa("late"));
  values.stop();
});
