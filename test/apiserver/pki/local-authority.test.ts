import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CertificateRenewer,
  type LocalCertificates,
  prepareCertificates,
} from "../../../src/apiserver/pki/local-authority.ts";
import { LOCAL_TEXT_FILES } from "../../../src/base/files/whole-file.ts";
import { makeCertificates } from "../../../src/server/certificates/make-certificates.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
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

function aRenewer() {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  let count = 0;
  let problem = "";
  const prepare = async (): Promise<LocalCertificates> => {
    if (problem !== "") throw new Error(problem);
    const nowMs = clock.now().getTime();
    const pair = { cert: `certificate ${++count}`, key: "" };
    return { authorities: [], server: pair, admin: pair, goodFrom: nowMs - DAY_MS, goodUntil: nowMs + 335 * DAY_MS };
  };
  const renewer = new CertificateRenewer({ prepare, clock, logger });
  return {
    clock,
    logger,
    renewer,
    failWith: (text: string) => {
      problem = text;
    },
    /** The certificate in use after the listener has checked. */
    served: async () => {
      renewer.current();
      await clock.advance(1_000);
      return renewer.current().server.cert;
    },
  };
}

const ready = async ({ renewer, clock }: ReturnType<typeof aRenewer>) => {
  let count = 0;
  void renewer.start(() => count++);
  await clock.advance(1_000);
  return () => count;
};

test("certificates are renewed when they are due, without a restart", async () => {
  const node = aRenewer();
  await ready(node);
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(334 * DAY_MS);
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(DAY_MS);
  expect(await node.served()).toBe("certificate 2");
  expect(await node.served()).toBe("certificate 2");
});

test("a clock that is set makes other ones when they are not valid at its time", async () => {
  const node = aRenewer();
  await ready(node);
  node.clock.jump("1970-01-01T00:00:10Z");
  expect(await node.served()).toBe("certificate 2");
});

test("a renewal that fails leaves the old ones in use and is tried again after an hour", async () => {
  const node = aRenewer();
  await ready(node);
  node.failWith("no space left on device");
  await node.clock.advance(336 * DAY_MS);
  expect([await node.served(), await node.served()]).toEqual(["certificate 1", "certificate 1"]);
  expect(node.logger.lines).toEqual(["error The local API keeps its certificates: no space left on device"]);
  node.failWith("");
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(3_600_000);
  expect(await node.served()).toBe("certificate 2");
});

test("without certificates at the start the port opens as soon as they can be made", async () => {
  const node = aRenewer();
  node.failWith("no space left on device");
  const count = await ready(node);
  expect(count()).toBe(0);
  node.failWith("");
  await node.clock.advance(60_000);
  expect(count()).toBe(1);
  expect(await node.served()).toBe("certificate 1");
});

test("a process that ends does not open the port late", async () => {
  const node = aRenewer();
  node.failWith("no space left on device");
  const count = await ready(node);
  node.failWith("");
  node.renewer.stop();
  await node.clock.advance(60_000);
  expect([count(), node.clock.pendingTimers]).toEqual([0, 0]);
});
