import { expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepareCertificates } from "../../../src/apiserver/pki/local-authority.ts";
import { makeCertificates } from "../../../src/apiserver/pki/make-certificates.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const START = Date.parse("2026-11-22T08:00:00Z");
const DAY_MS = 24 * 3_600_000;

/** Certificates as a start on some day finds or makes them. */
function aNode(addresses: readonly string[] = []) {
  const rootDir = tempDir();
  const at = (days: number) =>
    prepareCertificates({
      rootDir,
      nodeName: "node1",
      addresses,
      make: makeCertificates,
      now: () => new Date(START + days * DAY_MS),
    });
  return { rootDir, at };
}

const endOf = (pem: string) => Math.round((Date.parse(new X509Certificate(pem).validTo) - START) / DAY_MS);
const isSignedBy = (pem: string, authority: string) =>
  new X509Certificate(pem).verify(new X509Certificate(authority).publicKey);

test("certificates are kept until 30 days before they expire; then they are new, of the same authority", async () => {
  const { rootDir, at } = aNode();
  const first = await at(0);
  expect([endOf(first.authority), endOf(first.server.cert), endOf(first.admin.cert)]).toEqual([3650, 365, 365]);
  expect(await at(334)).toEqual(first);
  const renewed = await at(336);
  expect(renewed.authority).toBe(first.authority);
  expect([endOf(renewed.server.cert), endOf(renewed.admin.cert)]).toEqual([701, 701]);
  expect(renewed.admin.key).not.toBe(first.admin.key);
  // A copy of the old admin.conf is good until it expires.
  for (const { cert } of [first.admin, renewed.admin, renewed.server]) {
    expect(isSignedBy(cert, renewed.authority)).toBe(true);
  }
  for (const name of ["ca", "server", "admin"]) {
    expect(statSync(join(rootDir, "apiserver", `${name}.key`)).mode & 0o777).toBe(0o600);
  }
});

test("an authority that is about to expire is new, and so are all certificates", async () => {
  const { at } = aNode();
  const first = await at(0);
  const later = await at(3_630);
  expect(later.authority).not.toBe(first.authority);
  expect(endOf(later.authority)).toBe(3_630 + 3_650);
  for (const { cert } of [later.server, later.admin]) {
    expect([isSignedBy(cert, later.authority), isSignedBy(cert, first.authority)]).toEqual([true, false]);
  }
});

test("a certificate of another authority, one without its key and a damaged one are replaced", async () => {
  const { rootDir, at } = aNode();
  const foreign = await aNode().at(0);
  const own = await at(0);
  const put = (name: string, text: string) => writeFileSync(join(rootDir, "apiserver", name), text);
  put("server.crt", foreign.server.cert);
  put("server.key", foreign.server.key);
  put("admin.key", foreign.admin.key);
  const mended = await at(1);
  expect(mended.authority).toBe(own.authority);
  for (const { cert } of [mended.server, mended.admin]) expect(isSignedBy(cert, own.authority)).toBe(true);
  put("admin.crt", "no certificate");
  expect(isSignedBy((await at(2)).admin.cert, own.authority)).toBe(true);
  expect(readFileSync(join(rootDir, "apiserver", "admin.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
});

test("a clock that was far ahead and is right again does not leave certificates of the future", async () => {
  const { at } = aNode();
  const ahead = await at(500);
  const now = await at(0);
  expect(now.authority).not.toBe(ahead.authority);
  expect(Date.parse(new X509Certificate(now.server.cert).validFrom)).toBeLessThanOrEqual(START);
});
