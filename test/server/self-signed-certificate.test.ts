import { expect, test } from "bun:test";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { integer, objectIdentifier, octetString, time } from "../../src/server/der.ts";
import { addressBytes, toSelfSignedCertificate } from "../../src/server/self-signed-certificate.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

function certificate(changes: Partial<Parameters<typeof toSelfSignedCertificate>[0]> = {}) {
  return new X509Certificate(
    toSelfSignedCertificate({
      commonName: "node1@1795248000",
      names: ["node1", "localhost", "192.0.2.7", "127.0.0.1", "2001:db8::1"],
      notBefore: new Date("2026-11-20T08:00:00.500Z"),
      notAfter: new Date("2027-11-21T08:00:00Z"),
      serial: Buffer.from("00ff0102", "hex"),
      privateKey,
      ...changes,
    }),
  );
}

test("a certificate that a second implementation reads as it was meant, and whose signature holds", () => {
  const read = certificate();
  expect(read.subject).toBe("CN=node1@1795248000");
  expect(read.issuer).toBe(read.subject);
  expect(read.serialNumber).toBe("FF0102");
  expect(read.subjectAltName).toBe(
    "DNS:node1, DNS:localhost, IP Address:192.0.2.7, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1",
  );
  expect(read.validFrom).toBe("Nov 20 08:00:00 2026 GMT");
  expect(read.validTo).toBe("Nov 21 08:00:00 2027 GMT");
  expect(read.ca).toBe(false);
  expect(read.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  expect(read.verify(publicKey)).toBe(true);
  expect(read.checkPrivateKey(privateKey)).toBe(true);
  expect(read.checkHost("node1")).toBe("node1");
  expect(read.checkIP("192.0.2.7")).toBe("192.0.2.7");
  expect(read.checkHost("node2")).toBeUndefined();
});

test("years from 2050 on, and names longer than a short length can say", () => {
  const name = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}`;
  const read = certificate({ notAfter: new Date("2051-01-02T03:04:05Z"), names: [name], commonName: name });
  expect(read.validTo).toBe("Jan  2 03:04:05 2051 GMT");
  expect(read.checkHost(name)).toBe(name);
});

test.each([
  { what: "a highest bit that is set", bytes: "80", want: "02020080" },
  { what: "leading zeros", bytes: "000001", want: "020101" },
  { what: "nothing but zeros", bytes: "0000", want: "020100" },
])("an integer with $what", ({ bytes, want }) => {
  expect(integer(Buffer.from(bytes, "hex")).toString("hex")).toBe(want);
});

test("identifiers, lengths of one, two and three octets, times", () => {
  expect(objectIdentifier("1.2.840.10045.4.3.2").toString("hex")).toBe("06082a8648ce3d040302");
  expect(octetString(Buffer.alloc(127)).subarray(0, 2).toString("hex")).toBe("047f");
  expect(octetString(Buffer.alloc(128)).subarray(0, 3).toString("hex")).toBe("048180");
  expect(octetString(Buffer.alloc(256)).subarray(0, 4).toString("hex")).toBe("04820100");
  expect(time(new Date("2049-12-31T23:59:59Z")).toString()).toContain("491231235959Z");
  expect(time(new Date("2050-01-01T00:00:00Z")).toString()).toContain("20500101000000Z");
});

test.each([
  ["127.0.0.1", "7f000001"],
  ["::1", "00000000000000000000000000000001"],
  ["fe80::1:2", "fe800000000000000000000000010002"],
  ["2001:db8:1:2:3:4:5:6", "20010db8000100020003000400050006"],
  ["::ffff:192.0.2.1", "00000000000000000000ffffc0000201"],
  ["2001:db8::", "20010db8000000000000000000000000"],
])("bytes of %s", (address, want) => {
  expect(Buffer.from(addressBytes(address)).toString("hex")).toBe(want);
});
