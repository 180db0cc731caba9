import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseStream } from "../../../src/manifest/yaml/parse-stream.ts";
import { toPlainValue } from "../../../src/manifest/yaml/source-node.ts";

interface Verdict {
  documents?: unknown[];
  fails?: true;
}
interface Case {
  id: string;
  name: string;
  yaml: string;
  /** The suite's own verdict, by YAML 1.2. */
  suite?: Verdict;
  /** The verdict of go-yaml v2. */
  goYaml: Verdict;
}

const FIXTURES = join(import.meta.dir, "../../fixtures/yaml-test-suite");
const readFixture = (name: string) => JSON.parse(readFileSync(join(FIXTURES, name), "utf8"));
const cases: Case[] = readFixture("cases.json");
const differs = new Set<string>(readFixture("differs.json"));

/** The documents up to the first error. */
function read(yaml: string): Verdict {
  const { documents } = parseStream(Buffer.from(yaml));
  const failedAt = documents.findIndex(({ kind }) => kind === "error");
  const values = (failedAt < 0 ? documents : documents.slice(0, failedAt)).map((document) =>
    document.kind === "value" ? toPlainValue(document.root) : null,
  );
  // Through JSON, as fixtures have it: maps without a prototype become plain objects.
  return { documents: JSON.parse(JSON.stringify(values)), ...(failedAt >= 0 && { fails: true }) };
}

const title = ({ id, name }: Case) => ({ id, name });

test.each(cases.map((it) => ({ ...title(it), it })))("$id $name: as go-yaml v2", ({ it }) => {
  expect(read(it.yaml)).toEqual(it.goYaml);
});

const shared = cases.filter(({ id, suite }) => suite && !differs.has(id));

test.each(shared.map((it) => ({ ...title(it), it })))("$id $name: as the suite", ({ it: { yaml, suite } }) => {
  const found = read(yaml);
  // Documents before an error are not part of the suite's verdict.
  if (suite?.fails) expect(found.fails).toBe(true);
  else expect(found).toEqual({ ...suite });
});

test("the list of differences names exactly the cases where go-yaml v2 differs from the suite", () => {
  const isSame = ({ suite, goYaml }: Case) =>
    suite?.fails ? goYaml.fails === true : !goYaml.fails && Bun.deepEquals(suite?.documents, goYaml.documents);
  const found = cases.filter((it) => it.suite && !isSame(it)).map(({ id }) => id);
  expect(found).toEqual([...differs]);
});
