import { expect, test } from "bun:test";
import { findFailures } from "../../scripts/test-run.mjs";

test("the files with a failure are found, each failure with its own lines only", () => {
  const output = `
test/a.test.ts:
(pass) fine
error: expected 1
      at a.test.ts:3
\u001b[31m(fail)\u001b[0m group > one [1.00ms]
(pass) fine too

test/b.test.ts:
(pass) fine

test/c.test.ts:

# Unhandled error between tests
-------------------------------
error: while the file is loaded
-------------------------------

1 tests failed:
(fail) group > one [1.00ms]
`;
  expect(findFailures(output)).toEqual({
    files: ["test/a.test.ts", "test/c.test.ts"],
    failures: ["test/a.test.ts:\nerror: expected 1\n      at a.test.ts:3\n(fail) group > one [1.00ms]"],
  });
});

test("no failure, no file", () => {
  expect(findFailures("test/a.test.ts:\n(pass) fine\n")).toEqual({ files: [], failures: [] });
});
