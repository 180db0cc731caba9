import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import type { AnyObject } from "../kubectl.ts";
import { type CertificateFiles, TestCertificates } from "../test-certificates.ts";
import { RUN_ID } from "../test-node.ts";
import { freePorts } from "../test-servers.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { ETCD, KUBERNETES } from "./cluster-tools.ts";
import { toKubeconfig } from "./empty-cluster.ts";

export interface ControlPlaneOptions {
  apiServerFlags?: readonly string[];
  controllerManagerFlags?: readonly string[];
}

/** A token of the group system:bootstrappers, as kubeadm would make one. */
export const BOOTSTRAP_TOKEN = "abcdef.0123456789abcdef";

let count = 0;

/**
 * etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.20.2 on loopback ports and in a directory of their
 * own. To be stopped with `stop`, which removes everything.
 */
export class ControlPlane {
  readonly directory: string;
  readonly port: number;
  readonly authority: CertificateFiles;
  /** A member of system:masters. */
  readonly administrator: CertificateFiles;
  readonly adminConfig: string;
  readonly #etcdPort: number;
  readonly #options: ControlPlaneOptions;
  readonly #certificates: TestCertificates;
  readonly #processes = new Map<string, Subprocess>();

  constructor(options: ControlPlaneOptions = {}) {
    count += 1;
    this.#options = options;
    this.directory = mkdtempSync(join(tmpdir(), `kubelet-ts-plane-${RUN_ID}-${count}-`));
    [this.port, this.#etcdPort] = freePorts(2) as [number, number];
    this.#certificates = new TestCertificates(this.directory);
    this.authority = this.#certificates.authority("cluster-ca");
    this.administrator = this.clientCertificate("/O=system:masters/CN=admin");
    this.adminConfig = this.kubeconfig("admin", this.administrator);
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** @param subject as openssl writes it: `/O=system:nodes/CN=system:node:a` */
  clientCertificate(subject: string): CertificateFiles {
    return this.#certificates.client(subject, this.authority);
  }

  /** Writes a kubeconfig. @returns its path. @param server default: the API server itself, not a proxy */
  kubeconfig(name: string, user: CertificateFiles | { token: string }, server = this.url): string {
    const path = join(this.directory, `${name}.conf`);
    const credentials =
      "token" in user ? { token: user.token } : { "client-certificate": user.certFile, "client-key": user.keyFile };
    const cluster = { server, "certificate-authority": this.authority.certFile };
    writeFileSync(path, toKubeconfig(cluster, credentials), { mode: 0o600 });
    return path;
  }

  nodeConfig(nodeName: string, server?: string): string {
    return this.kubeconfig(nodeName, this.clientCertificate(`/O=system:nodes/CN=system:node:${nodeName}`), server);
  }

  async start(): Promise<void> {
    this.#startEtcd();
    this.#prepareApiServer();
    await this.startApiServer();
    this.#startControllers();
    await this.#until("the service account of namespace default", async () => {
      const argv = [
        join(KUBERNETES, "kubectl"),
        `--kubeconfig=${this.adminConfig}`,
        "get",
        "serviceaccount",
        "default",
      ];
      return (await Bun.spawn(argv, { stdout: "ignore", stderr: "ignore" }).exited) === 0;
    });
  }

  /**
   * Starts kube-apiserver, also again after `killApiServer`, and waits until it is ready.
   * @param flags in addition, or in place of those it has otherwise
   */
  async startApiServer(flags: readonly string[] = []): Promise<void> {
    this.#spawn("kube-apiserver", join(KUBERNETES, "kube-apiserver"), [...this.#apiServerFlags(), ...flags]);
    await this.#until("the API server's /readyz", async () => {
      const response = await fetch(`${this.url}/readyz`, { tls: { rejectUnauthorized: false } });
      return response.ok;
    });
  }

  /** Ends kube-apiserver. @param signal SIGTERM as an upgrade in place does */
  async killApiServer(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#end("kube-apiserver", signal);
  }

  /**
   * Changes an object in etcd, past the validation of this version: newer API servers allow edits that 1.20 refuses. Needs
   * `--storage-media-type=application/json`.
   * @param key e.g. `pods/default/web`
   */
  async rewrite(key: string, edit: (object: AnyObject) => void): Promise<void> {
    const ask = async (path: string, body: object): Promise<AnyObject> => {
      const url = `http://127.0.0.1:${this.#etcdPort}/v3/kv/${path}`;
      const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`etcd ${path} answered ${response.status}: ${await response.text()}`);
      return response.json();
    };
    const name = Buffer.from(`/registry/${key}`).toString("base64");
    const { kvs = [] } = await ask("range", { key: name });
    const object = JSON.parse(Buffer.from(kvs[0].value, "base64").toString());
    edit(object);
    await ask("put", { key: name, value: Buffer.from(JSON.stringify(object)).toString("base64") });
  }

  async stop(): Promise<void> {
    const order = ["kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"];
    for (const name of order) await this.#end(name, "SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }

  diagnosis(): string {
    return [...this.#processes.keys()]
      .map((name) => `${name}:\n${readFileSync(this.#log(name), "utf8").trimEnd().split("\n").slice(-12).join("\n")}`)
      .join("\n");
  }

  #startEtcd(): void {
    const [peerPort] = freePorts(1) as [number];
    const client = `http://127.0.0.1:${this.#etcdPort}`;
    const peer = `http://127.0.0.1:${peerPort}`;
    this.#spawn("etcd", ETCD, [
      `--data-dir=${join(this.directory, "etcd")}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--logger=zap",
      "--log-level=warn",
    ]);
  }

  #prepareApiServer(): void {
    const pairs = {
      serving: this.#certificates.serverOf(this.authority),
      kubelet: this.clientCertificate("/O=system:masters/CN=kube-apiserver-kubelet-client"),
      "service-accounts": this.#certificates.server("service-accounts", "rsa"),
    };
    for (const [name, { cert, key }] of Object.entries(pairs)) {
      writeFileSync(this.#file(`${name}.crt`), cert);
      writeFileSync(this.#file(`${name}.key`), key, { mode: 0o600 });
    }
    mkdirSync(this.#file("certs"), { recursive: true });
  }

  #apiServerFlags(): string[] {
    return [
      `--etcd-servers=http://127.0.0.1:${this.#etcdPort}`,
      `--cert-dir=${this.#file("certs")}`,
      `--secure-port=${this.port}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--client-ca-file=${this.authority.certFile}`,
      `--tls-cert-file=${this.#file("serving.crt")}`,
      `--tls-private-key-file=${this.#file("serving.key")}`,
      `--kubelet-client-certificate=${this.#file("kubelet.crt")}`,
      `--kubelet-client-key=${this.#file("kubelet.key")}`,
      "--kubelet-preferred-address-types=InternalIP",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${this.#file("service-accounts.crt")}`,
      `--service-account-signing-key-file=${this.#file("service-accounts.key")}`,
      "--service-cluster-ip-range=10.96.0.0/16",
      "--authorization-mode=Node,RBAC",
      "--enable-bootstrap-token-auth",
      "--enable-admission-plugins=NodeRestriction",
      "--feature-gates=EphemeralContainers=true",
      "--allow-privileged",
      "--profiling=false",
      ...(this.#options.apiServerFlags ?? []),
    ];
  }

  #startControllers(): void {
    const common = (name: string) => [
      `--kubeconfig=${this.kubeconfig(name, this.clientCertificate(`/CN=system:kube-${name}`))}`,
      "--bind-address=127.0.0.1",
      "--secure-port=0",
      "--port=0",
      "--leader-elect=false",
      "--profiling=false",
    ];
    this.#spawn("kube-controller-manager", join(KUBERNETES, "kube-controller-manager"), [
      ...common("controller-manager"),
      "--controllers=*,bootstrapsigner,tokencleaner",
      "--use-service-account-credentials",
      `--root-ca-file=${this.authority.certFile}`,
      `--service-account-private-key-file=${this.#file("service-accounts.key")}`,
      `--cluster-signing-cert-file=${this.authority.certFile}`,
      `--cluster-signing-key-file=${this.authority.keyFile}`,
      "--feature-gates=EphemeralContainers=true",
      ...(this.#options.controllerManagerFlags ?? []),
    ]);
    this.#spawn("kube-scheduler", join(KUBERNETES, "kube-scheduler"), common("scheduler"));
  }

  #spawn(name: string, program: string, flags: readonly string[]): void {
    const log = openSync(this.#log(name), "a");
    this.#processes.set(
      name,
      Bun.spawn([program, ...flags], {
        cwd: this.directory,
        env: { PATH: process.env.PATH ?? "", HOME: this.directory, GOMAXPROCS: "2" },
        stdin: "ignore",
        stdout: log,
        stderr: log,
      }),
    );
    closeSync(log);
  }

  async #end(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#processes.get(name);
    if (child === undefined) return;
    this.#processes.delete(name);
    child.kill(signal);
    await child.exited;
  }

  #until(what: string, attempt: () => Promise<boolean>) {
    return until(what, attempt, { limitMs: 2 * PATIENCE_MS, details: () => this.diagnosis() });
  }

  #file = (name: string) => join(this.directory, name);
  #log = (name: string) => this.#file(`${name}.log`);
}
