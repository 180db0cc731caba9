import { expect, test } from "bun:test";
import { ChangeLogger } from "../../../src/base/logging/change-logger.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

test("a fact is logged when it begins, and when it ends", () => {
  const logger = new RecordingLogger();
  const facts = new ChangeLogger(logger);
  facts.resolve("port", "the port is free");
  facts.log("port", "warn", "the port is busy");
  facts.log("port", "warn", "the port is busy");
  facts.log("port", "warn", "the port is forbidden");
  facts.resolve("port", "the port is free");
  facts.log("port", "warn", "the port is busy");
  expect(logger.lines).toEqual([
    "warn the port is busy",
    "warn the port is forbidden",
    "info the port is free",
    "warn the port is busy",
  ]);
});

test("prune forgets the facts of a group that are not true any more", () => {
  const logger = new RecordingLogger();
  const facts = new ChangeLogger(logger);
  const sayAll = () => {
    for (const key of ["a:1", "a:2", "b:1"]) facts.log(key, "info", key);
  };
  sayAll();
  facts.prune("a", new Set(["a:1", "a:2"]));
  facts.prune("b", new Set(["b:1"]));
  facts.prune("a", new Set(["a:1"]));
  sayAll();
  expect(logger.lines).toEqual(["info a:1", "info a:2", "info b:1", "info a:2"]);
});

test("memory is bounded", () => {
  const logger = new RecordingLogger();
  const facts = new ChangeLogger(logger);
  for (let n = 0; n < 10_001; n++) facts.log(`key ${n}`, "info", "said");
  facts.log("key 0", "info", "said");
  expect(logger.lines).toHaveLength(10_002);
});
