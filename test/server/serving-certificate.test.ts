import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LOCAL_TEXT_FILES } from "../../src/base/files/whole-file.ts";
import { makeSelfSigned } from "../../src/server/certificates/make-certificates.ts";
import { type CertificateStore, readTlsMaterial, type TlsFileOptions } from "../../src/server/serving-certificate.ts";
import { tempDirs } from "../support/temp-dir.ts";

const temp = tempDirs();
const NOW = new Date("2026-11-21T08:00:00Z");
const later = (days: number) => new Date(NOW.getTime() + days * 24 * 3_600_000);
const node1 = { nodeName: "node1", nodeIp: "192.0.2.7" };

const store: CertificateStore = {
  files: LOCAL_TEXT_FILES,
  makeCertificate: (selfSigned) => makeSelfSigned({ selfSigned }),
};

const aPair = (commonName: string) =>
  store.makeCertificate({ commonName, names: ["x"], notBefore: later(-900).getTime(), notAfter: later(-1).getTime() });

function world() {
  const directory = temp();
  const path = (name: string) => join(directory, name);
  const options: TlsFileOptions = { certDir: path("pki"), tlsCertFile: "", tlsPrivateKeyFile: "", clientCaFile: "" };
  const put = (name: string, text: string) => {
    mkdirSync(join(path(name), ".."), { recursive: true });
    writeFileSync(path(name), text);
    return path(name);
  };
  const read = (changes: Partial<TlsFileOptions> = {}, now = NOW, names = node1) =>
    readTlsMaterial(store, { ...options, ...changes }, names, now);
  return { path, put, read };
}

describe("without --tls-cert-file", () => {
  test("a certificate for name, address and loopback is made; only we can read its key", async () => {
    const { path, read } = world();
    const certificate = new X509Certificate((await read()).cert);
    expect(certificate.subject).toBe(`CN=node1@${NOW.getTime() / 1000}`);
    expect(certificate.issuer).toBe(certificate.subject);
    expect(certificate.validFrom).toBe("Nov 20 08:00:00 2026 GMT");
    expect([certificate.ca, certificate.keyUsage]).toEqual([false, ["1.3.6.1.5.5.7.3.1"]]);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subjectAltName).toBe(
      "DNS:node1, DNS:localhost, IP Address:192.0.2.7, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
    );
    expect(readdirSync(path("pki")).sort()).toEqual(["kubelet.crt", "kubelet.key"]);
    expect(statSync(path("pki/kubelet.key")).mode & 0o777).toBe(0o600);
    expect(statSync(path("pki/kubelet.crt")).mode & 0o777).toBe(0o644);
  });

  test("it is kept over restarts, and made again before it ends, when a name is missing, and when it lies in the future", async () => {
    const { read } = world();
    const first = await read();
    expect(await read({}, later(300))).toEqual(first);
    const second = await read({}, later(340));
    expect(second).not.toEqual(first);
    expect(await read({}, later(340))).toEqual(second);
    const renamed = await read({}, later(340), { ...node1, nodeName: "node2" });
    expect(new X509Certificate(renamed.cert).checkHost("node2")).toBe("node2");
    expect(new X509Certificate((await read({}, later(-10))).cert).subject).toContain(`@${later(-10).getTime() / 1000}`);
  });

  test("a crash between the two files heals", async () => {
    const { path, put, read } = world();
    await read();
    put("pki/kubelet.key", (await aPair("other")).key);
    const { cert, key } = await read();
    expect(readFileSync(path("pki/kubelet.key"), "utf8")).toBe(key);
    expect(await read()).toMatchObject({ cert, key });
  });

  test("a certificate that was put there is used as it is, though it has ended, and never overwritten", async () => {
    const { path, put, read } = world();
    const theirs = await aPair("someone");
    put("pki/kubelet.crt", theirs.cert);
    put("pki/kubelet.key", theirs.key);
    expect(await read()).toMatchObject(theirs);
    put("pki/kubelet.key", (await aPair("other")).key);
    await expect(read()).rejects.toThrow(/kubelet\.crt".*the key does not belong to the certificate/);
    rmSync(path("pki/kubelet.crt"));
    await expect(read()).rejects.toThrow(/there is ".*kubelet\.key" but no ".*kubelet\.crt"/);
    expect(existsSync(path("pki/kubelet.crt"))).toBe(false);
  });

  test("a directory that cannot be had", async () => {
    const { put, read } = world();
    put("file", "");
    await expect(read({ certDir: put("pki2", "") })).rejects.toThrow(/--cert-dir/);
  });
});

const good = await aPair("a");
const other = await aPair("b");

describe("files that were given", () => {
  test("are read again each time", async () => {
    const { put, read } = world();
    for (const pair of [await aPair("a"), await aPair("b")]) {
      const files = { tlsCertFile: put("tls.crt", pair.cert), tlsPrivateKeyFile: put("tls.key", pair.key) };
      expect(await read(files)).toEqual({ ...pair, clientCas: [] });
    }
  });

  test.each<[when: string, cert: string | undefined, key: string | undefined, want: RegExp]>([
    ["no certificate file", undefined, good.key, /--tls-cert-file ".*tls\.crt": there is no such/],
    ["no key file", good.cert, undefined, /--tls-private-key-file ".*tls\.key": there is no such/],
    ["no certificate in it", "hello", good.key, /holds no PEM certificate/],
    ["no key in it", good.cert, "hello", /holds no PEM private key/],
    ["another's key", good.cert, other.key, /the key does not belong to the certificate/],
  ])("%s", async (_, cert, key, want) => {
    const { path, put, read } = world();
    if (cert) put("tls.crt", cert);
    if (key) put("tls.key", key);
    await expect(read({ tlsCertFile: path("tls.crt"), tlsPrivateKeyFile: path("tls.key") })).rejects.toThrow(want);
  });

  test("a message never holds the key", async () => {
    const { put, read } = world();
    const key = put("tls.key", `${good.key.slice(0, 90)}!`);
    const attempt = read({ tlsCertFile: put("tls.crt", good.cert), tlsPrivateKeyFile: key });
    const message = await attempt.then(String, (error: Error) => error.message);
    expect(message).toContain("holds no PEM private key");
    expect(message).not.toContain(good.key.slice(30, 60));
  });
});

describe("--client-ca-file", () => {
  test("a bundle is taken apart, whatever stands between", async () => {
    const { put, read } = world();
    const [a, b] = [(await aPair("a")).cert, (await aPair("b")).cert];
    const { clientCas } = await read({ clientCaFile: put("ca.crt", `# ours\n${a}\ntheirs\n${b}`) });
    expect(clientCas.map((pem) => new X509Certificate(pem).subject)).toEqual(["CN=a", "CN=b"]);
  });

  test.each([
    { when: "is missing", text: undefined, want: /--client-ca-file ".*": there is no such file/ },
    { when: "is empty", text: "", want: /holds no PEM certificate/ },
    {
      when: "is damaged",
      text: "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
      want: /certificate 1 of 1 is damaged/,
    },
  ])("$when", async ({ text, want }) => {
    const { path, put, read } = world();
    if (text !== undefined) put("ca.crt", text);
    await expect(read({ clientCaFile: path("ca.crt") })).rejects.toThrow(want);
  });
});
