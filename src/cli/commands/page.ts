import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { createLoginToken, readPageSecret } from "../../server/page/page-session.ts";
import { locateKubelet } from "../client/find-kubelet.ts";
import { CommandError, type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";

const HANDSHAKE_MS = 3000;

const NEEDS_OWNER = "only the user that runs the kubelet, usually root, can log in: use sudo";
/** A desktop that has not refused the link by then shows it: some wait until the browser is closed. */
const OPENING_MS = 3000;

/** `kubelet-ts page [--open]`: a link with a one-time token. Returns the exit code. */
export async function runPage(request: CommandRequest, io: CommandIo): Promise<number> {
  if (request.value("server")) throw new UsageError("needs the kubelet's root directory: use --root-dir, not --server");
  const kubelet = await locateKubelet(request);
  if ("problem" in kubelet) throw new CommandError(kubelet.isForeign ? NEEDS_OWNER : kubelet.problem);
  const { pageUrl, rootDir = "" } = kubelet.instance ?? {};
  if (!pageUrl) {
    throw new CommandError(
      "the kubelet does not serve the page: --cadvisor-port is 0, or another program has that port (see its log)",
    );
  }
  const secret = readSecret(rootDir);
  const certificate = pageUrl.startsWith("https:") ? await readCertificate(new URL(pageUrl)) : undefined;
  const address = certificate ? toCertifiedUrl(pageUrl, certificate) : pageUrl;
  const toLink = (userId?: number) => `${address}/#token=${createLoginToken(secret, io.now().getTime(), userId)}`;
  if (certificate) io.stderr(`SHA-256 fingerprint of its certificate: ${certificate.fingerprint256}\n`);
  if (request.isOn("open") || isDesktop(process.env, process.stdout.isTTY)) {
    const reader = browserUser(process.getuid?.() ?? 0, process.env);
    // All users of this machine see the arguments of a process.
    if (await opens(openCommand(toLink(reader.id), reader.name))) {
      io.stderr("Opened in the browser.\n");
      return 0;
    }
    if (request.isOn("open")) io.stderr("No browser could be opened (xdg-open). The link:\n");
  }
  io.stdout(`${toLink()}\n`);
  if (process.stdout.isTTY && process.env.SSH_CONNECTION && !certificate) {
    const { port } = new URL(pageUrl);
    io.stderr(`For a browser on this machine. On another one, first: ssh -L ${port}:${new URL(pageUrl).host} HOST\n`);
  }
  return 0;
}

function readSecret(rootDir: string): Buffer {
  try {
    return readPageSecret(rootDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EACCES") {
      throw new CommandError(NEEDS_OWNER);
    }
    if (code === "ENOENT") {
      throw new CommandError(
        `"${join(rootDir, "page-secret")}" is missing: kubelet-ts writes it when it starts, restart it`,
      );
    }
    throw new CommandError(message);
  }
}

/** Whether the command was typed where a browser can appear. Output that is piped is for a program. */
export const isDesktop = (environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean =>
  isTerminal && Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY) && !environment.SSH_CONNECTION;

/** The user whose browser is opened. Browsers do not run as root: under sudo it is that of the user that called. */
export function browserUser(
  userId: number,
  { SUDO_USER, SUDO_UID = "" }: Readonly<Record<string, string | undefined>>,
): { id: number; name?: string } {
  const isOther = userId === 0 && SUDO_USER !== undefined && SUDO_USER !== "root" && /^\d+$/.test(SUDO_UID);
  return isOther ? { id: Number(SUDO_UID), name: SUDO_USER } : { id: userId };
}

/** How the desktop opens a link. @param userName absent: the user that called */
export const openCommand = (link: string, userName: string | undefined): string[] => [
  ...(userName === undefined ? [] : ["runuser", "-u", userName, "--"]),
  "xdg-open",
  link,
];

/** Whether the desktop took the link. */
async function opens(command: string[]): Promise<boolean> {
  try {
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore", detached: true });
    child.unref();
    return await Promise.race([child.exited.then((code) => code === 0), Bun.sleep(OPENING_MS).then(() => true)]);
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
