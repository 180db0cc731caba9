import { join } from "node:path";

/** Paths of PEM files. */
export interface TestPki {
  ca: string;
  /** For 127.0.0.1. */
  server: string;
  serverKey: string;
  /** Common name `client`. */
  client: string;
  clientKey: string;
}

/** An authority with a server's and a client's certificate, made by openssl into `directory`. */
export function makeTestPki(directory: string): TestPki {
  const openssl = (command: string, subject?: string) => {
    const words = [...command.split(" "), ...(subject ? ["-subj", subject] : [])];
    const { exitCode, stderr } = Bun.spawnSync(["openssl", ...words], { cwd: directory, stderr: "pipe" });
    if (exitCode !== 0) throw new Error(stderr.toString());
  };
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
  openssl(`req -x509 ${key} -keyout ca.key -out ca.pem -days 2`, "/CN=Test CA");
  for (const [name, extra] of [
    ["server", "subjectAltName=IP:127.0.0.1"],
    ["client", "extendedKeyUsage=clientAuth"],
  ] as const) {
    openssl(`req ${key} -keyout ${name}.key -out ${name}.csr -addext ${extra}`, `/CN=${name}`);
    const signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy -days 2";
    openssl(`x509 -req -in ${name}.csr ${signing} -out ${name}.pem`);
  }
  const at = (file: string) => join(directory, file);
  return {
    ca: at("ca.pem"),
    server: at("server.pem"),
    serverKey: at("server.key"),
    client: at("client.pem"),
    clientKey: at("client.key"),
  };
}
