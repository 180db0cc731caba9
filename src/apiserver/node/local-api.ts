import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { TextFiles } from "../../base/files/text-files.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { HealthCheck } from "../../base/model/health-check.ts";
import type { Logger } from "../../base/model/logger.ts";
import { Listener } from "../../server/listener.ts";
import type { ListenerTls } from "../../server/node-transport.ts";
import type { ListenAddress } from "../../server/request-handler.ts";
import { readAuthorities } from "../../server/serving-certificate.ts";
import type { ApiObject } from "../api-object.ts";
import { type ApiRouteDeps, toApiRoute } from "../api-route.ts";
import { ApiServer, type ExtraRoute } from "../api-server.ts";
import { authenticate, SOCKET_USER } from "../authentication.ts";
import { ExplicitClusterDns } from "../kinds/cluster-dns.ts";
import { isUnschedulable } from "../kinds/core-kinds.ts";
import type { ReadSubmitted } from "../kinds/decode-manifest.ts";
import { buildRegistry } from "../kinds/served-kinds.ts";
import { answerNonResource, type VersionInfo } from "../non-resource-paths.ts";
import { ObjectCommands } from "../object-commands.ts";
import { ObjectDeleter } from "../object-deleter.ts";
import { ObjectStore } from "../object-store.ts";
import { ObjectWriter } from "../object-writer.ts";
import { prepareAdminConfig } from "../pki/admin-config.ts";
import { CertificateRenewer } from "../pki/certificate-renewer.ts";
import type { CertificateRequest, CertificateResult } from "../pki/certificate-request.ts";
import type { LocalCertificates } from "../pki/local-authority.ts";
import { type ResourceDefinition, resourceId } from "../resource-definition.ts";
import { RevisionClock, type RevisionMark } from "../revision-clock.ts";
import { DiskCheck } from "../storage/disk-check.ts";
import { ManifestDirectory } from "../storage/manifest-directory.ts";
import { SubmittedObjects } from "../storage/submitted-objects.ts";
import { TokenFile } from "../token-file.ts";
import type { ObjectStorage } from "../write-request.ts";
import { NodeMirror, type NodeView } from "./mirror.ts";
import { refusalOf } from "./refusal.ts";
import { StorageProtection } from "./storage-protection.ts";

interface LocalApiDeps {
  rootDir: string;
  nodeName: string;
  nodeIp: string;
  /** "" and 0: no TLS. */
  address: string;
  /** The certificate is valid for these too. */
  otherAddresses: readonly string[];
  /** 0 = no TLS; the Unix socket answers in any case. */
  port: number;
  /** "" = none. */
  clientCaFile: string;
  tlsVersions: ListenerTls["versions"];
  /** "" = none. */
  tokenAuthFile: string;
  read: ReadSubmitted;
  clock: Clock;
  logger: Logger;
  version: VersionInfo;
  mark: RevisionMark;
  makeCertificates: (order: CertificateRequest) => Promise<CertificateResult>;
  /** Names the process that listens on a port. */
  portHolder: (port: number) => Promise<string | undefined>;
  files: TextFiles;
  /** Resolves when the disk of a directory answers. @throws Error when it does not, in time */
  probeDirectory: (directory: string) => Promise<void>;
}

/** Dependencies that exist only once the kubelet is built. */
interface LocalApiNode {
  view: NodeView;
  healthChecks: () => readonly HealthCheck[];
  extras: readonly ExtraRoute[];
}

const CLAIMS = "persistentvolumeclaims";
/** Longest path of a Unix socket, in bytes. Source: unix(7). */
const MAX_SOCKET_PATH_BYTES = 107;
const DISK_RETRY_MS = 10_000;
/** Most clients are of this machine, so all may have one address. Watches and sessions keep their connections. */
const LIMITS = { connections: 1_000, perAddress: 1_000 };

/** The Kubernetes API of this node, with everything that belongs to it. */
export class LocalApi {
  readonly store: ObjectStore;
  readonly writer: ObjectWriter;
  readonly deleter: ObjectDeleter;
  /** For callers inside this process. */
  readonly commands: ObjectCommands;
  /** Feeds the kubelet with what was submitted. */
  readonly submitted: SubmittedObjects;
  readonly registry;
  readonly #deps: LocalApiDeps;
  readonly #directory: ManifestDirectory;
  #toYaml: ((value: unknown) => string) | undefined;
  #mirror: NodeMirror | undefined;
  #view: NodeView | undefined;
  #tls: Listener | undefined;
  #socket: Listener | undefined;
  readonly #certificates: CertificateRenewer;
  readonly #finishing = new Set<string>();
  readonly #disk: DiskCheck;
  readonly #tokens: TokenFile;
  readonly #protection: StorageProtection;
  #isStopped = false;

  constructor(deps: LocalApiDeps) {
    this.#deps = deps;
    const { clock, logger, read, rootDir } = deps;
    this.#certificates = new CertificateRenewer({ prepare: () => prepareAdminConfig(deps), clock, logger });
    this.#disk = new DiskCheck({ directory: join(rootDir, "state"), probe: deps.probeDirectory, clock });
    this.#tokens = new TokenFile({ path: deps.tokenAuthFile, files: deps.files, clock, logger });
    this.registry = buildRegistry(read);
    this.store = new ObjectStore(new RevisionClock(deps.mark));
    const clusterDns = new ExplicitClusterDns();
    this.#directory = new ManifestDirectory({
      rootDir,
      registry: this.registry,
      logger,
      toYaml: () => this.#toYaml,
      clusterDns,
    });
    const storage: ObjectStorage = {
      save: (definition, object) => {
        if (definition.storage === "node") return this.#view?.setUnschedulable(isUnschedulable(object));
        this.#directory.save(definition, object);
        this.submitted.claim(definition, object);
      },
      remove: (definition, object) => this.#directory.remove(definition, object),
    };
    this.writer = new ObjectWriter({
      store: this.store,
      storage,
      clock,
      newUid: () => randomUUID(),
      random: Math.random,
      refusalOf: (definition, object) =>
        refusalOf(definition, object, {
          store: this.store,
          registry: this.registry,
          isOwn: (it, found) => this.submitted.isOwn(it, found),
          originOf: (kind, metadata) => this.#view?.originOf(kind, metadata),
          userOfClaim: (fullName) => this.#view?.userOfClaim(fullName),
        }),
      onCreate: (object, sent) => clusterDns.note(object, sent),
      onUnfinalized: (definition, object) => this.#onUnfinalized(definition, object),
    });
    this.deleter = new ObjectDeleter({
      store: this.store,
      registry: this.registry,
      writer: this.writer,
      storage,
      clock,
      isInUse: ({ kind }, { metadata }) => this.#view?.isInUse(kind, metadata) === true,
      isMadeByController: ({ plural }, { metadata }) =>
        plural === "pods" && this.#view?.isOfWorkload(metadata.uid ?? "") === true,
      deleteMade: ({ metadata }, graceSeconds) => this.#view?.deleteOfWorkload(metadata.uid ?? "", graceSeconds),
      removeUnclaimed: (definition, object) => {
        if (this.submitted.isOwn(definition, object)) return false;
        const { namespace = "default", name } = object.metadata;
        const fullName = `${namespace}/${name}`;
        if (definition.plural === CLAIMS && this.#view?.deleteClaim(fullName)) return true;
        return this.#view?.forget(definition.plural === "pods" ? fullName : `${definition.kind} ${fullName}`) ?? false;
      },
    });
    this.commands = new ObjectCommands({
      store: this.store,
      registry: this.registry,
      writer: this.writer,
      deleter: this.deleter,
      prepare: async (definition) => {
        await this.#mirror?.refresh(definition);
        await this.#beforeWrite();
      },
    });
    this.#protection = new StorageProtection({
      store: this.store,
      registry: this.registry,
      writer: this.writer,
      disk: this.#disk,
      clock,
      isInUse: ({ kind }, { metadata }) => this.#view?.arePodsKnown() !== true || this.#view.isInUse(kind, metadata),
    });
    this.submitted = new SubmittedObjects({
      store: this.store,
      registry: this.registry,
      directory: this.#directory,
      clusterDns,
      read,
      clock,
      logger,
      onFileRemoved: (definition, object) => {
        const { namespace, name } = object.metadata;
        this.deleter.delete(definition, namespace, name, DELETE_OPTIONS);
      },
    });
  }

  /** Port that answers; undefined while there is none. */
  get port(): number | undefined {
    return this.#tls?.port;
  }

  get socketPath(): string | undefined {
    return this.#socket?.socketPath;
  }

  get revision(): number {
    return this.store.revision;
  }

  /** The kubelet has another state of its pods. */
  podsChanged(): void {
    this.#mirror?.podsChanged();
    this.#protection.check();
  }

  /** Pods and ReplicaSets that a new workload took over are no longer objects of their own. */
  releaseAdopted(isAdopted: (uid: string) => boolean): void {
    for (const definition of [this.registry.findKind("v1", "Pod"), this.registry.findKind("apps/v1", "ReplicaSet")]) {
      if (!definition) continue;
      for (const object of this.store.list(resourceId(definition))) {
        const isOwn = this.submitted.isOwn(definition, object);
        if (isOwn && isAdopted(object.metadata.uid ?? "")) this.submitted.release(definition, object);
      }
    }
  }

  /** Deletes Jobs of clients, as the TTL controller of a cluster does. */
  deleteExpired(isExpired: (uid: string) => boolean): void {
    const definition = this.registry.findKind("batch/v1", "Job");
    if (!definition) return;
    for (const job of this.store.list(resourceId(definition))) {
      const { namespace, name, uid = "" } = job.metadata;
      if (this.submitted.isOwn(definition, job) && isExpired(uid)) {
        this.deleter.delete(definition, namespace, name, DELETE_OPTIONS);
      }
    }
  }

  /** Brings the pods of the store up to date. */
  async refreshPods(): Promise<void> {
    const pods = this.registry.get("pods");
    if (pods) await this.#mirror?.refresh(pods);
  }

  eventRecorded(): void {
    this.#mirror?.eventRecorded();
  }

  /** Opens the socket and the port. Never rejects: without them pods are supervised nevertheless. */
  async start({ view, healthChecks, extras }: LocalApiNode): Promise<void> {
    const { clock, logger, address, port, rootDir, version } = this.#deps;
    this.#view = view;
    this.submitted.load();
    const mirror = new NodeMirror({
      store: this.store,
      registry: this.registry,
      view,
      clock,
      isOwn: (definition, object) => this.submitted.isOwn(definition, object),
      onGone: (definition, object) => void this.#finish(definition, object),
    });
    this.#mirror = mirror;
    const server = new ApiServer({
      registry: this.registry,
      store: this.store,
      writer: this.writer,
      deleter: this.deleter,
      clock,
      random: Math.random,
      extras,
      otherPaths: (request, served) =>
        answerNonResource(request, served, {
          version,
          serverAddress: () => `${address}:${this.port ?? port}`,
          healthChecks,
          openApi: async (openApiRequest, all) => {
            const { openApiResponse } = await import("../openapi/openapi-response.ts");
            return openApiResponse(openApiRequest, all);
          },
        }),
      refresh: (definition) => mirror.refresh(definition),
      beforeWrite: () => this.#beforeWrite(),
      onError: (error, path) => logger.error("A request of the local API failed", { path, error }),
    });
    const answer: ApiRouteDeps["answer"] = (request) => server.answer(request);
    const socketPath = join(rootDir, "api.sock");
    if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH_BYTES) {
      logger.warn(`The local API has no socket: "${socketPath}" is longer than ${MAX_SOCKET_PATH_BYTES} bytes`);
    } else this.#socket = this.#listen({ socketPath }, { logger, answer, authenticate: () => SOCKET_USER });
    if (port === 0) return;
    await this.#certificates.start(() => {
      this.#tls = this.#listen(
        { hostname: address, port },
        {
          logger,
          answer,
          authenticate: async (shown, authorization) =>
            authenticate(shown, authorization, await this.#tokens.read(), clock.now()),
        },
        () => this.#certificates.current(),
      );
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#protection.stop();
    this.#certificates.stop();
    this.#mirror?.stop();
    await Promise.all([this.#tls?.stop(), this.#socket?.stop()]);
  }

  #listen(listenAddress: ListenAddress, deps: ApiRouteDeps, certificates?: () => LocalCertificates): Listener {
    const { clock, logger, clientCaFile, tlsVersions, portHolder, files } = this.#deps;
    const readMaterial = async (current: LocalCertificates) => ({
      ...current.server,
      clientCas: [...current.authorities, ...(clientCaFile === "" ? [] : await readAuthorities(files, clientCaFile))],
    });
    const listener = new Listener(
      {
        name: "Kubernetes API",
        address: listenAddress,
        route: toApiRoute(deps),
        // Clients prove who they are with a certificate or a token, or by the mode of the socket.
        acceptsHost: () => true,
        portHolder,
        transport: "node:http",
        limits: LIMITS,
        ...(certificates && { tls: { versions: tlsVersions, readMaterial: () => readMaterial(certificates()) } }),
      },
      clock,
      logger,
    );
    listener.start();
    return listener;
  }

  /** Removes an ended pod, later when the disk does not answer now. */
  async #finish(definition: ResourceDefinition, object: ApiObject): Promise<void> {
    const uid = object.metadata.uid ?? "";
    if (this.#finishing.has(uid)) return;
    this.#finishing.add(uid);
    try {
      await this.#disk.wait();
      this.deleter.finish(definition, object);
    } catch {
      if (!this.#isStopped) this.#deps.clock.schedule(DISK_RETRY_MS, () => this.#mirror?.podsChanged());
    } finally {
      this.#finishing.delete(uid);
    }
  }

  async #beforeWrite(): Promise<void> {
    await Promise.all([this.#loadYaml(), this.#disk.wait()]);
  }

  async #loadYaml(): Promise<void> {
    if (this.#toYaml) return;
    const { stringify } = await import("yaml");
    this.#toYaml = (value) => stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
  }

  #onUnfinalized(definition: ResourceDefinition, object: ApiObject): void {
    this.deleter.unfinalized(definition, object);
    if (definition.gracefulDeletion) this.#mirror?.podsChanged();
  }
}

/** Someone removed the file. */
const DELETE_OPTIONS = {
  gracePeriodSeconds: undefined,
  propagation: "Background",
  preconditions: {},
  dryRun: false,
} as const;
