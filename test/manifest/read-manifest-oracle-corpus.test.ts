import { describe, expect, test } from "bun:test";
import type { ObjectResult } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { isObjectKind } from "../../src/manifest/workloads/kind-rules.ts";
import { bytesOf, comparable, errorSet, type OracleCase, readOracleCases } from "./oracle-cases.ts";

/** Cases that are not followed, each with the reason why following it would be worse. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "mut/volumes/projected-bare-empty":
    "projected: {} prints sources: null upstream; we print [], the same to every reader and one type less to check for",
  "text/bytes/after-doc-ff":
    "a bad byte after the document's end is read or not by chance of a buffer's size; here it is an error of the next document",
  "text/bytes/after-doc-del": "as text/bytes/after-doc-ff",
};

/** Whole kinds of objects that the kubelet's sources refuse and we read on purpose. */
const READ_ON_PURPOSE = ["List", "PodList", "ConfigMap", "Secret"];

function read(oracle: OracleCase): ObjectResult[] {
  const source = oracle.source === "url" ? "http" : "file";
  return readManifest(bytesOf(oracle), { file: "f.yaml", nodeName: "node1", source }).results;
}

describe("manifests the kubelet has judged", () => {
  const judged = readOracleCases("validation-open")
    .filter(({ id }) => !(id in EXCEPTIONS))
    .map((oracle) => ({ oracle, result: read(oracle)[0]! }));

  test("each gets the same verdict", () => {
    const others = judged
      .filter(({ oracle, result }) => result.valid !== oracle.ok && !isObjectKind(result.kind))
      .map(({ oracle }) => oracle.id);
    expect(others).toEqual([]);
  });

  test("each pod gets the same defaults", () => {
    const accepted = judged.filter(({ oracle }) => oracle.ok);
    const others = accepted.filter(({ oracle, result }) => comparable(result.pod) !== comparable(oracle.pod));
    expect(others.map(({ oracle }) => oracle.id)).toEqual([]);
    expect(accepted.length).toBeGreaterThan(1800);
  });

  test("each mistake is reported on the same field with the same type, and no other", () => {
    const refused = judged.filter(({ oracle }) => oracle.stage === "validate");
    const others = refused.filter(({ oracle, result }) => {
      const own = errorSet(result.findings.filter((finding) => finding.code === "invalid"));
      const lists = [oracle.errors ?? [], oracle.errors_new ?? []].map(errorSet);
      return !lists.some((list) => Bun.deepEquals(list, own));
    });
    expect(others.map(({ oracle }) => oracle.id)).toEqual([]);
    expect(refused.length).toBeGreaterThan(900);
  });

  test("each finding has a place in the text", () => {
    const findings = judged.flatMap(({ result }) => result.findings);
    expect(findings.filter(({ line, column }) => !(line >= 1 && column >= 1))).toEqual([]);
  });
});

describe("streams and URLs", () => {
  const streams = readOracleCases("sources-open").filter(({ id, files }) => !files && !(id in EXCEPTIONS));

  test("where the kubelet takes the first document, its verdict is the same", () => {
    const others = streams.filter((oracle) => {
      if (oracle.pods) return false;
      const first = read(oracle)[0]!;
      const isOnPurpose = READ_ON_PURPOSE.includes(first.kind) || isObjectKind(first.kind);
      return first.valid !== oracle.ok && !isOnPurpose && !isFromList(oracle);
    });
    expect(others.map(({ id }) => id)).toEqual([]);
  });

  test("a PodList from a URL gives the same pods", () => {
    const lists = streams.filter(({ pods }) => pods !== undefined);
    const others = lists.filter((oracle) => {
      const own = read(oracle).flatMap(({ pod }) => (pod ? [comparable(pod)] : []));
      return !Bun.deepEquals(own.sort(), oracle.pods!.map(comparable).sort());
    });
    expect(others.map(({ id }) => id)).toEqual([]);
    expect(lists.length).toBeGreaterThan(5);
  });
});

/** The items of a list stand for it. */
const isFromList = ({ manifest }: OracleCase) => /kind"?: "?(?:Pod)?List\b/.test(manifest ?? "");
