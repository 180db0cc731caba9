import { join } from "node:path";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../../files/bounded-read.ts";
import type { ListenerTls } from "../../server/listener.ts";
import { readTlsMaterial, type TlsMaterial } from "../../server/serving-certificate.ts";
import type { NodeContext } from "./node-context.ts";

/** TLS of the page on a network address. The port serves cAdvisor's API without TLS too, as it always did. */
export const pageTls = (context: NodeContext): ListenerTls => ({
  isOptional: true,
  versions: toTlsVersions(context.options.tlsMinVersion, context.options.tlsCipherSuites),
  readMaterial: () => readPageMaterial(context),
});

/**
 * The certificate of `--tls-cert-file`; without that flag, the one of the local API, whose authority a browser can be told
 * to trust; without a local API, the one of the authenticated port.
 */
function readPageMaterial({ options, node, clock }: NodeContext): TlsMaterial {
  if (options.tlsCertFile !== "" || options.localApiPort === 0) {
    const names = { nodeName: node.name, nodeIp: node.ip };
    return { ...readTlsMaterial({ ...options, clientCaFile: "" }, names, clock.now()), clientCas: [] };
  }
  const directory = join(options.rootDir, "apiserver");
  const read = (name: string) => readBoundedText(join(directory, name), SYSTEM_FILE_BYTES);
  return { cert: read("server.crt"), key: read("server.key"), clientCas: [] };
}
