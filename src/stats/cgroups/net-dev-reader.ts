import { type InterfaceCounters, parseNetDev } from "../../base/host/proc.ts";
import { OpenFileReader } from "./open-file-reader.ts";

interface OpenNetwork {
  pid: number;
  file: OpenFileReader;
  text: string;
  interfaces: readonly InterfaceCounters[];
}

/**
 * Interface counters of the networks that processes are in, each read through a descriptor that is kept: opening
 * `/proc/<pid>/net/dev` costs three times as much as reading it. An open one keeps the network alive in the kernel after
 * its last process, so release the descriptors that are no longer needed.
 */
export class NetDevReader {
  readonly #proc: string;
  readonly #networks = new Map<string, OpenNetwork>();

  constructor(procRoot: string) {
    this.#proc = procRoot;
  }

  /**
   * Empty when the process is gone, or was none (pid 0).
   * @param id of the container whose process it is, or another name of the network
   */
  read(id: string, pid: number): readonly InterfaceCounters[] {
    if (pid <= 0) return [];
    let network = this.#networks.get(id);
    if (network?.pid !== pid) {
      network?.file.close();
      network = { pid, file: new OpenFileReader(`${this.#proc}/${pid}/net/dev`), text: "", interfaces: [] };
      this.#networks.set(id, network);
    }
    const text = network.file.read() ?? "";
    if (text !== network.text) {
      network.text = text;
      network.interfaces = parseNetDev(text);
    }
    return network.interfaces;
  }

  /** Releases all others. */
  retain(ids: ReadonlySet<string>): void {
    for (const [id, { file }] of this.#networks) {
      if (ids.has(id)) continue;
      file.close();
      this.#networks.delete(id);
    }
  }

  close(): void {
    this.retain(new Set());
  }
}
