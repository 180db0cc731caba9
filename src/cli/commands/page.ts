import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import tls from "node:tls";
import { readPageSecret } from "../../pageserver/page-secret.ts";
import { createLoginToken } from "../../pageserver/page-session.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, openKubelet, UsageError } from "../sub-command.ts";

const HANDSHAKE_MS = 3000;

/** `kubelet-ts page [--open]`: a link with a one-time token. Returns the exit code. */
export async function runPage(request: CommandRequest, io: CommandIo): Promise<number> {
  const [first] = request.positionals;
  if (first !== undefined) throw new UsageError(`takes no arguments (found "${first}")`);
  if (request.value("server")) throw new UsageError("needs the kubelet's root directory: use --root-dir, not --server");
  const { kubelet } = await openKubelet(request);
  const { pageUrl, rootDir = "" } = kubelet.instance ?? {};
  if (!pageUrl) throw new CommandError("the kubelet does not serve the page: start it with --cadvisor-port=4194");
  const certificate = pageUrl.startsWith("https:") ? await readCertificate(new URL(pageUrl)) : undefined;
  const address = certificate ? toCertifiedUrl(pageUrl, certificate) : pageUrl;
  const link = `${address}/#token=${createLoginToken(readSecret(rootDir), io.now().getTime())}`;
  if (certificate) io.stderr(`SHA-256 fingerprint of its certificate: ${certificate.fingerprint256}\n`);
  if ((request.isOn("open") || isDesktop(process.env, process.stdout.isTTY)) && (await opens(link))) {
    io.stderr("Opened in the browser.\n");
    return 0;
  }
  io.stdout(`${link}\n`);
  return 0;
}

function readSecret(rootDir: string): Buffer {
  try {
    return readPageSecret(rootDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandError(
      code === "EACCES"
        ? `only the user that runs the kubelet on "${rootDir}", usually root, can log in: use sudo`
        : message,
    );
  }
}

/** Whether the command was typed where a browser can appear. Output that is piped is for a program. */
export const isDesktop = (environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean =>
  isTerminal && Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY) && !environment.SSH_CONNECTION;

/** How the desktop opens a link. Browsers do not run as root: under sudo it is opened as the user that called. */
export function openCommand(link: string, userId: number, sudoUser: string | undefined): string[] {
  const isOther = userId === 0 && sudoUser !== undefined && sudoUser !== "root";
  return [...(isOther ? ["runuser", "-u", sudoUser, "--"] : []), "xdg-open", link];
}

/** Whether the desktop took the link. */
async function opens(link: string): Promise<boolean> {
  try {
    const command = openCommand(link, process.getuid?.() ?? 0, process.env.SUDO_USER);
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return (await child.exited) === 0;
  } catch {
    return false;
  }
}

/** The address by a name of the certificate, where that is not valid for the address itself: browsers then do not warn. */
export function toCertifiedUrl(address: string, certificate: X509Certificate): string {
  const url = new URL(address);
  const host = withoutBrackets(url.hostname);
  if (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) return address;
  const names = (certificate.subjectAltName ?? "")
    .split(", ")
    .flatMap((entry) => /^DNS:([\w.-]+)$/.exec(entry)?.[1] ?? []);
  const name = names.find((known) => known !== "localhost");
  return name === undefined ? address : `https://${name}:${url.port || 443}`;
}

const withoutBrackets = (hostname: string) => hostname.replace(/^\[|\]$/g, "");

/** The certificate that the port shows now; undefined when it cannot be read. */
function readCertificate({ hostname, port }: URL): Promise<X509Certificate | undefined> {
  return new Promise((resolve) => {
    const host = withoutBrackets(hostname);
    // The user compares it; nothing is sent over this connection.
    const socket = tls.connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate();
      resolve(raw ? new X509Certificate(raw) : undefined);
      socket.destroy();
    });
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    socket.on("error", () => resolve(undefined));
    socket.on("close", () => resolve(undefined));
  });
}
