import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { FileSlot } from "../../base/concurrency/worker-pool.ts";
import type { TextFiles } from "../../base/files/whole-file.ts";
import { MAX_SOCKET_PATH_BYTES } from "../../base/host/http-fetch.ts";
import { apiSocketOf } from "../../base/host/root-directory.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { makeCertificates } from "../../server/certificates/certificate-process.ts";
import { Listener } from "../../server/listener.ts";
import type { ListenerTls } from "../../server/node-transport.ts";
import type { ListenerRequest, ListenerResponse } from "../../server/request-handler.ts";
import { BodyTooLongError, type ListenAddress, TooManyBodiesError } from "../../server/request-handler.ts";
import { readAuthorities } from "../../server/serving-certificate.ts";
import { badRequest, notFound, tooLarge, tooManyRequests } from "../api-error.ts";
import {
  type ApiUser,
  authenticate,
  json,
  MAX_BODY_BYTES,
  type RequestInfo,
  SOCKET_USER,
  TokenFile,
} from "../api-request.ts";
import { ApiServer, type ExtraRoute } from "../api-server.ts";
import { nonResourceResponse } from "../discovery.ts";
import { buildRegistry } from "../kinds/served-kinds.ts";
import { type ObjectAccess, ObjectCommands } from "../object-commands.ts";
import { BACKGROUND, GarbageCollector, ObjectDeleter, StorageProtection } from "../object-deleter.ts";
import { type ApiObject, ObjectStore, RevisionClock } from "../object-store.ts";
import { ObjectWriter, PendingStores } from "../object-writer.ts";
import { CertificateRenewer, type LocalCertificates, prepareAdminConfig } from "../pki/local-authority.ts";
import {
  type ReadOptions,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
} from "../resource-definition.ts";
import { DiskCheck, ManifestDirectory } from "../storage/manifest-directory.ts";
import { SubmittedObjects } from "../storage/submitted-objects.ts";
import { NodeObjects, type NodeView } from "./node-view.ts";
import { toApiService } from "./own-objects.ts";

interface LocalApiDeps {
  options: KubeletOptions;
  tlsVersions: ListenerTls["versions"];
  node: { name: string; ip: string };
  clock: Clock;
  logger: Logger;
  version: object;
  mark: Persisted<number>;
  background: LocalApiBackground;
}

/** Blocking calls that are made in another thread. */
interface LocalApiBackground {
  readonly textFiles: TextFiles;
  /** For files that are read every few seconds. */
  readonly repeatedFiles: Pick<TextFiles, "readText">;
  readonly slot: FileSlot;
  readonly tasks: {
    /** Names the process that listens on a port. */
    findPortHolder(port: number): Promise<string | undefined>;
    /** Resolves when the disk of a directory answers. @throws Error when it does not, in time */
    probeDirectory(directory: string): Promise<void>;
  };
}

const DISK_RETRY_MS = 10_000;
/**
 * Most clients are of this machine, so all may have one address. Watches and sessions, 256 each, keep their connections. One
 * with TLS takes 50 kB.
 */
const LIMITS = { connections: 600, perAddress: 600 };

/** The Kubernetes API of this node, with everything that belongs to it. */
export class LocalApi implements ObjectAccess {
  readonly store: ObjectStore;
  readonly writer: ObjectWriter;
  readonly deleter: ObjectDeleter;
  readonly storing = new PendingStores();
  /** For callers inside this process. */
  readonly commands: ObjectCommands;
  /** Feeds the kubelet with what was submitted. */
  readonly submitted: SubmittedObjects;
  readonly registry: ResourceRegistry;
  readonly readOptions: ReadOptions;
  readonly events: NodeObjects["events"];
  readonly #deps: LocalApiDeps;
  readonly #directory: ManifestDirectory;
  readonly #nodeObjects: NodeObjects;
  #tls: Listener | undefined;
  #socket: Listener | undefined;
  readonly #certificates: CertificateRenewer;
  readonly #finishing = new Set<string>();
  readonly #disk: DiskCheck;
  readonly #tokens: TokenFile;
  readonly #protection: StorageProtection;
  readonly #garbage: GarbageCollector;
  #isStopped = false;

  constructor(deps: LocalApiDeps) {
    this.#deps = deps;
    const { clock, logger, options, node, background } = deps;
    const { rootDir } = options;
    const files = background.textFiles;
    this.#certificates = new CertificateRenewer({
      prepare: () => prepareAdminConfig({ options, node, files, clock, makeCertificates }),
      clock,
      logger,
    });
    this.#disk = new DiskCheck({ directory: join(rootDir, "state"), tasks: background.tasks, clock });
    this.#tokens = new TokenFile({ path: options.tokenAuthFile, files, clock, logger });
    this.registry = buildRegistry();
    this.store = new ObjectStore(new RevisionClock(deps.mark));
    this.readOptions = { nodeName: node.name, allowPrivileged: options.allowPrivileged };
    const { store, registry, readOptions, storing } = this;
    const shared = { store, registry, clock, logger };
    this.#directory = new ManifestDirectory({ rootDir, registry, readOptions, logger });
    const place = { directory: this.#directory, slot: background.slot, nodeName: node.name };
    const submitted = new SubmittedObjects({ ...shared, ...place });
    this.submitted = submitted;
    const onGone = (definition: ResourceDefinition, object: ApiObject) => void this.#finish(definition, object);
    const own = toApiService(options, node, toApiTime(clock.now()));
    const nodeObjects = new NodeObjects({ ...shared, storing, submitted, onGone, own });
    this.#nodeObjects = nodeObjects;
    this.events = nodeObjects.events;
    const ruled = { ...shared, storage: submitted, rules: nodeObjects, disk: this.#disk };
    const writer = new ObjectWriter({ ...ruled, readOptions, newUid: randomUUID, random: Math.random });
    this.writer = writer;
    this.deleter = new ObjectDeleter({ ...ruled, writer, storing });
    this.commands = new ObjectCommands(this);
    this.#protection = new StorageProtection({
      ...ruled,
      writer,
      isInUse: (definition, object) =>
        nodeObjects.node?.isEveryOwnerKnown !== true || nodeObjects.isInUse(definition, object),
    });
    this.#garbage = new GarbageCollector({
      ...ruled,
      deleter: this.deleter,
      isOwn: (definition, object) => submitted.isOwn(definition, object),
      refresh: () => {
        nodeObjects.sync(true);
        return nodeObjects.node?.arePodsKnown === true;
      },
    });
    submitted.onFileRemoved = (definition, object) => void this.#delete(definition, object);
    this.writer.onUnfinalized = (definition, object) => {
      if (definition.gracefulDeletion) this.#nodeObjects.podsChanged();
      else this.deleter.finish(definition, object);
    };
  }

  /** The kubelet has another state of its pods. @param isStatus the status of a pod, and nothing else */
  podsChanged(isStatus = false): void {
    this.#nodeObjects.podsChanged(isStatus);
    this.#protection.check();
    if (this.#nodeObjects.node?.isEveryOwnerKnown) this.deleter.settle(() => this.#nodeObjects.sync(true));
  }

  /** Pods and ReplicaSets that a new workload took over are no longer objects of their own. */
  releaseAdopted(isAdopted: (uid: string) => boolean): void {
    for (const definition of [this.registry.get("pods")!, this.registry.get("replicasets.apps")!]) {
      for (const object of this.store.list(resourceId(definition))) {
        const isKnown = this.submitted.isOwn(definition, object) && this.submitted.isHandedOn(definition, object);
        if (isKnown && isAdopted(object.metadata.uid ?? "")) this.submitted.release(definition, object);
      }
    }
  }

  /** Deletes Jobs of clients, as the TTL controller of a cluster does. */
  deleteExpired(isExpired: (uid: string) => boolean): void {
    const definition = this.registry.get("jobs.batch")!;
    for (const job of this.store.list(resourceId(definition))) {
      if (this.submitted.isOwn(definition, job) && isExpired(job.metadata.uid ?? "")) this.#delete(definition, job);
    }
  }

  #delete(definition: ResourceDefinition, { metadata }: ApiObject): void {
    this.deleter.delete({ definition, namespace: metadata.namespace, name: metadata.name }, BACKGROUND);
  }

  /** An object as it is now. @throws ApiError 404 */
  async find(plural: string, { namespace, name }: Pick<RequestInfo, "namespace" | "name">): Promise<ApiObject> {
    const definition = this.registry.get(plural)!;
    await this.refresh(definition);
    const found = this.store.get(resourceId(definition), namespace, name);
    if (!found) throw notFound(definition, name);
    return found;
  }

  /** Brings the objects of a kind up to date. */
  async refresh(definition: ResourceDefinition): Promise<void> {
    await this.#nodeObjects.refresh(definition);
  }

  /** Makes sure that the disk can be written to. @throws ApiError 500 */
  async prepareWrite(): Promise<void> {
    await Promise.all([this.#directory.loadYaml(), this.#disk.wait()]);
  }

  /** Opens the socket and the port. Never rejects: without them pods are supervised nevertheless. */
  async start(node: NodeView, extras: readonly ExtraRoute[]): Promise<void> {
    const { clock, logger, options, version } = this.#deps;
    const { rootDir, localApiAddress: address, localApiPort: port } = options;
    this.#nodeObjects.node = node;
    this.submitted.load();
    this.#garbage.start();
    const server = new ApiServer({
      objects: this,
      podDoubt: (gone) => {
        if (gone && !node.kubelet.mayRun(gone)) return undefined;
        return node.view.engineError() ?? (node.kubelet.isSynced ? undefined : "the engine has not answered yet");
      },
      clock,
      logger,
      random: Math.random,
      extras,
      otherPaths: (request, served) =>
        nonResourceResponse(request, served, {
          version,
          serverAddress: () => `${address}:${port}`,
          healthChecks: () => node.view.healthChecks(),
          metrics: (scrape) => node.servers.respond({ ...scrape, path: "/metrics", text: async () => "" }),
          openApi: async (openApiRequest, all) => {
            const { openApiResponse } = await import("../openapi/documents.ts");
            return openApiResponse(openApiRequest, all);
          },
        }),
    });
    const ownRoute = toApiRoute(server, () => SOCKET_USER);
    const socketPath = apiSocketOf(rootDir);
    if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH_BYTES) {
      logger.warn(`The local API has no socket: "${socketPath}" is longer than ${MAX_SOCKET_PATH_BYTES} bytes`);
    } else this.#socket = this.#listen({ socketPath }, ownRoute);
    if (port === 0) return;
    const route = toApiRoute(server, async ({ shown, header }) =>
      authenticate(shown, header("Authorization"), await this.#tokens.read(), clock.now()),
    );
    await this.#certificates.start(() => {
      this.#tls = this.#listen({ hostname: address, port }, route, () => this.#certificates.current());
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#protection.stop();
    this.#garbage.stop();
    this.#certificates.stop();
    this.#nodeObjects.stop();
    await Promise.all([this.#tls?.stop(), this.#socket?.stop()]);
  }

  #listen(address: ListenAddress, route: ApiRoute, certificates?: () => LocalCertificates): Listener {
    const { clock, logger, options, tlsVersions, background } = this.#deps;
    const { clientCaFile } = options;
    const readMaterial = async (current: LocalCertificates) => ({
      ...current.server,
      clientCas: [
        ...current.authorities,
        ...(clientCaFile === "" ? [] : await readAuthorities(background.repeatedFiles, clientCaFile)),
      ],
    });
    const listener = new Listener(
      {
        name: "Kubernetes API",
        address,
        route,
        // Clients prove who they are with a certificate or a token, or by the mode of the socket.
        acceptsHost: () => true,
        transport: "node:http",
        limits: LIMITS,
        ...(certificates && { tls: { versions: tlsVersions, readMaterial: () => readMaterial(certificates()) } }),
      },
      { clock, logger, portHolder: (port) => background.tasks.findPortHolder(port) },
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
      if (!this.#isStopped) this.#deps.clock.schedule(DISK_RETRY_MS, () => this.#nodeObjects.podsChanged());
    } finally {
      this.#finishing.delete(uid);
    }
  }
}

/** Sessions of exec, attach and port-forward at a time: each holds two connections and a process in a container. */
const MAX_SESSIONS = 256;

type ApiRoute = (request: ListenerRequest) => Promise<ListenerResponse>;

/** The route of a listener of the API. @param authenticate undefined: 401 */
const toApiRoute =
  (
    server: ApiServer,
    authenticate: (request: ListenerRequest) => ApiUser | undefined | Promise<ApiUser | undefined>,
  ): ApiRoute =>
  async (request) => {
    const { method, path, query, header, signal, upgrade } = request;
    const response = await server.respond(
      { method, path, query, header, signal, upgrade, body: () => readBody(request) },
      async () => {
        const user = await authenticate(request);
        if (user && request.sessions > MAX_SESSIONS) {
          const sessions = `${MAX_SESSIONS} sessions of exec, attach and port-forward`;
          throw tooManyRequests(`${sessions} are open: end some of them first`);
        }
        return user;
      },
    );
    if ("takeOver" in response || "run" in response) {
      return upgrade === "" ? json(400, badRequest("Upgrade request required").status) : response;
    }
    return { ...response, headers: { ...response.headers, "Cache-Control": "no-cache, private" } };
  };

async function readBody(request: ListenerRequest): Promise<Uint8Array> {
  try {
    return await request.body(MAX_BODY_BYTES);
  } catch (error) {
    if (error instanceof BodyTooLongError) throw tooLarge(MAX_BODY_BYTES);
    if (error instanceof TooManyBodiesError) throw tooManyRequests(error.message);
    throw error;
  }
}
