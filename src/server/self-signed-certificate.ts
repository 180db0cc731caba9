import { createPublicKey, type KeyObject, sign } from "node:crypto";
import { isIP } from "node:net";
import {
  bitString,
  contextTag,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  trueValue,
  utf8String,
} from "./der.ts";

interface CertificateRequest {
  commonName: string;
  /** DNS names and IP addresses it is good for, distinguished by their form. */
  names: readonly string[];
  notBefore: Date;
  notAfter: Date;
  /** Any bytes that no other certificate of this name has. */
  serial: Uint8Array;
  /** On the curve P-256. */
  privateKey: KeyObject;
}

const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const EXTENSION = {
  subjectAltName: "2.5.29.17",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  basicConstraints: "2.5.29.19",
} as const;
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
/** digitalSignature: the first of nine bits, seven of its byte unused. */
const DIGITAL_SIGNATURE = Buffer.from([0x03, 0x02, 0x07, 0x80]);
const VERSION_3 = integer(Buffer.from([2]));

/**
 * A certificate for a server that signs itself: clients trust it by knowing it (`curl --cacert`). Source: RFC 5280; what
 * it says of itself is what the kubelet's own says.
 * @returns PEM
 */
export function toSelfSignedCertificate(request: CertificateRequest): string {
  const algorithm = sequence(objectIdentifier(ECDSA_WITH_SHA256));
  const name = sequence(setOf(sequence(objectIdentifier(COMMON_NAME), utf8String(request.commonName))));
  const toBeSigned = sequence(
    contextTag(0, VERSION_3),
    integer(request.serial),
    algorithm,
    name,
    sequence(time(request.notBefore), time(request.notAfter)),
    name,
    createPublicKey(request.privateKey).export({ type: "spki", format: "der" }),
    contextTag(
      3,
      sequence(
        extension(EXTENSION.keyUsage, DIGITAL_SIGNATURE, "critical"),
        extension(EXTENSION.extendedKeyUsage, sequence(objectIdentifier(SERVER_AUTH))),
        extension(EXTENSION.basicConstraints, sequence(), "critical"),
        extension(EXTENSION.subjectAltName, sequence(...request.names.map(alternativeName))),
      ),
    ),
  );
  const certificate = sequence(toBeSigned, algorithm, bitString(sign("sha256", toBeSigned, request.privateKey)));
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64").replace(/(.{64})(?=.)/g, "$1\n")}\n-----END CERTIFICATE-----\n`;
}

function extension(identifier: string, value: Uint8Array, critical?: "critical"): Buffer {
  return sequence(objectIdentifier(identifier), ...(critical ? [trueValue()] : []), octetString(value));
}

function alternativeName(name: string): Buffer {
  return isIP(name) ? contextTag(7, addressBytes(name), true) : contextTag(2, Buffer.from(name), true);
}

/** 4 bytes, or 16. */
export function addressBytes(address: string): Uint8Array {
  if (isIP(address) === 4) return Uint8Array.from(address.split(".").map(Number));
  // The URL parser brings any IPv6 spelling into one form, dotted tails included.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string) => text.split(":").filter(Boolean);
  const missing = 8 - groups(head).length - groups(tail ?? "").length;
  const all = [...groups(head), ...Array<string>(tail === undefined ? 0 : missing).fill("0"), ...groups(tail ?? "")];
  return Uint8Array.from(all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]));
}
