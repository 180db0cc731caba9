import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepareCertificates } from "../../../src/apiserver/pki/local-authority.ts";
import { LOCAL_TEXT_FILES } from "../../../src/base/files/text-files.ts";
import { makeCertificates } from "../../../src/server/certificates/make-certificates.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const START = Date.parse("2026-11-22T08:00:00Z");
const DAY_MS = 24 * 3_600_000;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g;

/** Certificates as a start on some day finds or makes them. */
function aNode() {
  const rootDir = tempDir();
  const options = { rootDir, localApiAddress: "127.0.0.1", localApiPort: 6443, cadvisorBindAddress: "" };
  const at = (days: number) =>
    prepareCertificates({
      files: LOCAL_TEXT_FILES,
      options,
      node: { name: "node1", ip: "192.0.2.1" },
      makeCertificates,
      clock: { now: () => new Date(START + days * DAY_MS) },
    });
  return { rootDir, at };
}

const endOf = (pem: string) => Math.round((Date.parse(new X509Certificate(pem).validTo) - START) / DAY_MS);
const isSignedBy = (pem: string, authority: string) =>
  new X509Certificate(pem).verify(new X509Certificate(authority).publicKey);

test("certificates are kept until 30 days before they expire; then they are new, of the same authority", async () => {
  const { rootDir, at } = aNode();
  const first = await at(0);
  expect([endOf(first.authorities[0]!), endOf(first.server.cert), endOf(first.admin.cert)]).toEqual([3650, 365, 365]);
  expect(await at(334)).toEqual(first);
  const renewed = await at(336);
  expect(renewed.authorities).toEqual(first.authorities);
  expect([endOf(renewed.server.cert), endOf(renewed.admin.cert)]).toEqual([701, 701]);
  expect(renewed.admin.key).not.toBe(first.admin.key);
  // A copy of the old admin.conf is good until it expires.
  for (const { cert } of [first.admin, renewed.admin, renewed.server]) {
    expect(isSignedBy(cert, renewed.authorities[0]!)).toBe(true);
  }
  for (const name of ["ca", "server", "admin"]) {
    expect(statSync(join(rootDir, "apiserver", `${name}.key`)).mode & 0o777).toBe(0o600);
  }
});

describe("an authority that is about to expire", () => {
  test("is replaced while it outlives its certificates; they and copies of them stay valid", async () => {
    const { rootDir, at } = aNode();
    await at(0);
    const first = await at(3_200);
    expect(first.authorities.length).toBe(1);
    const later = await at(3_256);
    expect(later.authorities.map(endOf)).toEqual([3_256 + 3_650, 3_650]);
    expect(later.authorities[1]).toBe(first.authorities[0]!);
    expect([later.server, later.admin]).toEqual([first.server, first.admin]);
    expect(statSync(join(rootDir, "apiserver", "ca-previous.key")).mode & 0o777).toBe(0o600);
    expect(await at(3_257)).toEqual(later);
  });

  test("certifies the next one, so that a client that only knows the former trusts the server", async () => {
    const { at } = aNode();
    await at(0);
    const first = await at(3_200);
    await at(3_256);
    // The certificates of day 3200 are renewed on day 3535.
    const later = await at(3_536);
    const [current = "", former = ""] = later.authorities;
    const [server = "", link = ""] = later.server.cert.match(PEM) ?? [];
    expect(former).toBe(first.authorities[0]!);
    expect([isSignedBy(server, current), isSignedBy(server, former), isSignedBy(link, former)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(isSignedBy(server, link)).toBe(true);
    expect(endOf(link)).toBe(3_650);
    // Nothing that it signed is lost before it expires.
    expect((await at(3_649)).authorities.length).toBe(2);
    expect((await at(3_651)).authorities).toEqual([current]);
  });
});

test("the time until which the certificates are good is the first at which one is replaced or no longer accepted", async () => {
  const { at } = aNode();
  const day = ({ goodFrom, goodUntil }: { goodFrom: number; goodUntil: number }) =>
    [goodFrom, goodUntil].map((time) => Math.round((time - START) / DAY_MS));
  expect(day(await at(0))).toEqual([-1, 335]);
  expect(day(await at(3_200))).toEqual([3_199, 3_255]);
  expect(day(await at(3_256))).toEqual([3_255, 3_535]);
  expect(day(await at(3_536))).toEqual([3_535, 3_650]);
});

test("an authority that a wrong clock made gives way to the one before it", async () => {
  const { at } = aNode();
  const first = await at(0);
  const wrong = await at(-20_000);
  expect(wrong.authorities).not.toEqual(first.authorities);
  const right = await at(1);
  expect(right.authorities).toEqual(first.authorities);
  // A copy of the first admin.conf works again.
  expect(isSignedBy(right.server.cert, first.authorities[0]!)).toBe(true);
  expect((await at(-19_999)).authorities).toEqual(wrong.authorities);
  expect((await at(2)).authorities).toEqual(first.authorities);
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
  expect(mended.authorities).toEqual(own.authorities);
  for (const { cert } of [mended.server, mended.admin]) expect(isSignedBy(cert, own.authorities[0]!)).toBe(true);
  put("admin.crt", "no certificate");
  expect(isSignedBy((await at(2)).admin.cert, own.authorities[0]!)).toBe(true);
  expect(readFileSync(join(rootDir, "apiserver", "admin.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
});

test("a clock that was far ahead and is right again does not leave certificates of the future", async () => {
  const { at } = aNode();
  const ahead = await at(500);
  const now = await at(0);
  expect(now.authorities[0]).not.toBe(ahead.authorities[0]);
  expect(now.authorities.length).toBe(1);
  expect(Date.parse(new X509Certificate(now.server.cert).validFrom)).toBeLessThanOrEqual(START);
});
