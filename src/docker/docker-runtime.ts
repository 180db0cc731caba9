import { closeSync, openSync, readSync } from "node:fs";
import type { Clock } from "../base/model/clock.ts";
import type { Listed, Observed, ObservedRuntime, WatchOptions } from "../base/model/container-runtime.ts";
import type { PodNetworks } from "../base/model/pod-networks.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import { unescapeMountPath } from "../base/text/mount-path.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { isNotFound } from "./engine/docker-error.ts";
import { toObserved } from "./inspect-to-snapshot.ts";
import { isOwned, LABEL, type Owner, toOwnershipFilter } from "./labels.ts";

const PROC_BYTES = 16 * 1024;
/** Pauses between two tries to get the event stream back. */
const RECONNECT_MS = [50, 100, 250, 500, 1000, 2000];

/** The containers of one Docker engine that carry our ownership labels. */
export class DockerRuntime implements ObservedRuntime {
  readonly #client: DockerClient;
  readonly #owner: Owner;
  readonly #clock: Clock;
  readonly #onReconnect: (signal: AbortSignal) => Promise<void>;
  readonly #networks: Pick<PodNetworks, "ipsOf">;

  /**
   * @param onReconnect called when an engine that was unreachable answers again, before anything else is asked
   * @param networks addresses of the sandboxes that plugins attached
   */
  constructor(
    client: DockerClient,
    owner: Owner,
    clock: Clock,
    onReconnect: (signal: AbortSignal) => Promise<void> = async () => {},
    networks: Pick<PodNetworks, "ipsOf"> = { ipsOf: () => undefined },
  ) {
    this.#client = client;
    this.#owner = owner;
    this.#clock = clock;
    this.#onReconnect = onReconnect;
    this.#networks = networks;
  }

  async list(signal?: AbortSignal): Promise<Listed[]> {
    const filters = { label: toOwnershipFilter(this.#owner) };
    const containers = await this.#client.listContainers({ all: true, filters }, { signal });
    return containers.map(({ Id, State, Labels }) => ({ id: Id, podUid: Labels[LABEL.podUid] ?? "", state: State }));
  }

  async inspect(id: ContainerId, signal?: AbortSignal): Promise<Observed | undefined> {
    try {
      const inspect = await this.#client.inspectContainer(id, { signal });
      if (!isOwned(inspect.Config.Labels, this.#owner)) return undefined;
      const { UpperDir } = inspect.GraphDriver.Data;
      const layer = UpperDir || readWritableLayerPath(inspect.State.Pid, inspect.Id);
      return toObserved(inspect, layer, this.#networks.ipsOf(id));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async watch({ onOpen, onEvent, onLost, signal }: WatchOptions): Promise<void> {
    let failures = 0;
    let cursor: string | undefined;
    const filters = { type: ["container"], label: toOwnershipFilter(this.#owner) };
    while (!signal.aborted) {
      try {
        // The engine may have been upgraded in between.
        if (failures > 0) {
          await this.#client.connect({ signal });
          await this.#onReconnect(signal);
        }
        const opened = () => {
          failures = 0;
          onOpen();
        };
        for await (const event of this.#client.events({ filters, since: cursor, signal, onOpen: opened })) {
          cursor = event.cursor;
          const { signal: number } = event.attributes;
          onEvent({ id: event.id, action: event.action, ...(number !== undefined && { signal: number }) });
        }
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0) onLost(error as Error);
      }
      if (signal.aborted) return;
      const pauseMs = RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)]!;
      failures++;
      await this.#clock.sleep(pauseMs, signal).catch(() => {});
    }
  }
}

/**
 * The directory of a container's writable layer, where inspect does not name it: with images in containerd, as in new
 * engines. "" when it is not an overlay, or not this machine's.
 * @param pid of the container's main process on the host
 * @param containerId all 64 digits: a process that is not in a cgroup of that name is another one
 */
export function readWritableLayerPath(pid: number, containerId: string): string {
  if (pid <= 1) return "";
  try {
    const isOurs = readStart(`/proc/${pid}/cgroup`).includes(containerId);
    return isOurs ? parseUpperDir(readStart(`/proc/${pid}/mountinfo`)) : "";
  } catch {
    // It has ended, or may not be read.
    return "";
  }
}

/** The start of a file of the kernel: a container may have made any number of mounts, its root is the first. */
function readStart(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(PROC_BYTES);
    let length = 0;
    // The kernel hands out a page at a time.
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, length);
    }
    return buffer.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** `upperdir` of the overlay a process has for its root; "" when that is none. Source: proc(5), overlayfs's options. */
export function parseUpperDir(mountinfo: string): string {
  const root = mountinfo.split("\n").findLast((line) => line.split(" ", 5)[4] === "/") ?? "";
  const [type, , options = ""] = root.slice(root.indexOf(" - ") + 3).split(" ");
  return type === "overlay" ? unescapeMountPath(/(?:^|,)upperdir=([^,]*)/.exec(options)?.[1] ?? "") : "";
}
