import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface CertificateFiles {
  certFile: string;
  keyFile: string;
  cert: string;
  key: string;
}

/** Certificates made by Debian's openssl, so that another's understanding of them is tested too. */
export class TestCertificates {
  readonly #directory: string;
  #count = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  authority(name: string): CertificateFiles {
    return this.#selfSigned(name, ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign"]);
  }

  /** For a server at 127.0.0.1, not at any name. */
  serverOf(issuer: CertificateFiles): CertificateFiles {
    return this.#issued("/CN=server", issuer, 3650, "subjectAltName=IP:127.0.0.1");
  }

  /** Self-signed, for a server on the loopback. */
  server(name: string, key: "ec" | "rsa" = "ec"): CertificateFiles {
    return this.#selfSigned(name, ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], key);
  }

  /** Self-signed, for a server of that name only: no address fits. */
  serverNamed(name: string): CertificateFiles {
    return this.#selfSigned(name, ["-addext", `subjectAltName=DNS:${name}`]);
  }

  /** With a key that Debian's OpenSSL refuses in a chain. */
  weak(name: string): CertificateFiles {
    return this.#selfSigned(name, [], "rsa:1024");
  }

  /** @param subject as openssl writes it: `/O=devs/CN=alice` */
  client(
    subject: string,
    issuer: CertificateFiles,
    { days = 3650, usage = "clientAuth" }: { days?: number; usage?: "clientAuth" | "serverAuth" } = {},
  ): CertificateFiles {
    return this.#issued(subject, issuer, days, `extendedKeyUsage=${usage}`);
  }

  #issued(subject: string, issuer: CertificateFiles, days: number, extension: string): CertificateFiles {
    const files = this.#files();
    const request = `${files.certFile}.csr`;
    const extensions = `${files.certFile}.ext`;
    writeFileSync(extensions, `${extension}\n`);
    this.#openssl(["req", "-new", ...newKey("ec"), "-keyout", files.keyFile, "-out", request, "-subj", subject]);
    const signer = ["-CA", issuer.certFile, "-CAkey", issuer.keyFile, "-CAcreateserial"];
    const validity = ["-days", String(days), "-extfile", extensions];
    this.#openssl(["x509", "-req", "-in", request, "-out", files.certFile, ...signer, ...validity]);
    return withText(files);
  }

  #selfSigned(name: string, extensions: readonly string[], key: KeyKind = "ec"): CertificateFiles {
    const files = this.#files();
    const place = ["-keyout", files.keyFile, "-out", files.certFile, "-subj", `/CN=${name}`, "-days", "3650"];
    this.#openssl(["req", "-x509", ...newKey(key), ...place, ...extensions]);
    return withText(files);
  }

  #files() {
    this.#count += 1;
    const path = join(this.#directory, `certificate-${this.#count}`);
    return { certFile: `${path}.crt`, keyFile: `${path}.key` };
  }

  #openssl(args: readonly string[]): void {
    const { status, stderr, error } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`openssl ${args[0]} failed: ${error?.message ?? stderr}`);
  }
}

type KeyKind = "ec" | "rsa" | "rsa:1024";

const newKey = (kind: KeyKind) =>
  kind !== "ec"
    ? ["-newkey", kind === "rsa" ? "rsa:2048" : kind, "-nodes"]
    : ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

const withText = (files: { certFile: string; keyFile: string }): CertificateFiles => ({
  ...files,
  cert: readFileSync(files.certFile, "utf8"),
  key: readFileSync(files.keyFile, "utf8"),
});
