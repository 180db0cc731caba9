import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeCniRules } from "../../../scripts/cni-rules.mjs";
import { CNI_PLUGINS } from "./cluster-tools.ts";

let count = 0;

/** A network of Debian's plugins for one node: bridge, host-local and portmap, with a bridge and a subnet of its own. */
export class CniNetwork {
  readonly confDir: string;
  readonly cacheDir: string;
  readonly bridge: string;
  readonly #ipamDir: string;
  readonly #subnet: string;

  constructor(directory: string) {
    count += 1;
    this.confDir = join(directory, "net.d");
    this.cacheDir = join(directory, "cni");
    this.#ipamDir = join(directory, "ipam");
    // The sweep of a later run reads the process in the name.
    this.bridge = `ktcni${process.pid.toString(36)}-${count.toString(36)}`;
    this.#subnet = `10.246.${(process.pid + count) % 256}.0/24`;
    mkdirSync(this.confDir);
  }

  get flags(): string[] {
    return [
      "--network-plugin=cni",
      `--cni-conf-dir=${this.confDir}`,
      `--cni-bin-dir=${CNI_PLUGINS}`,
      `--cni-cache-dir=${this.cacheDir}`,
    ];
  }

  /** Writes the configuration; until then the node has no network. */
  configure(): void {
    const ipam = {
      type: "host-local",
      dataDir: this.#ipamDir,
      ranges: [[{ subnet: this.#subnet }]],
      routes: [{ dst: "0.0.0.0/0" }],
    };
    this.write({
      cniVersion: "0.4.0",
      name: this.bridge,
      plugins: [
        { type: "bridge", bridge: this.bridge, isGateway: true, ipMasq: true, hairpinMode: true, ipam },
        { type: "portmap", capabilities: { portMappings: true } },
        // Docker drops what is forwarded between bridges that are not its own.
        { type: "firewall", backend: "iptables" },
      ],
    });
  }

  write(config: object): void {
    writeFileSync(join(this.confDir, "10-pods.conflist"), JSON.stringify(config));
  }

  /** Addresses that host-local has given away. */
  addresses(): string[] {
    return list(join(this.#ipamDir, this.bridge)).filter((name) => /^[0-9.]+$/.test(name));
  }

  /** Files of attachments that are kept. */
  records(): string[] {
    return list(this.cacheDir);
  }

  /** Removes what the plugins made: the bridge, and the firewall rules of pods whose kubelet was killed. */
  remove(): void {
    removeCniRules((name) => name === this.bridge);
    Bun.spawnSync(["ip", "link", "delete", this.bridge]);
  }
}

const list = (directory: string) => (existsSync(directory) ? readdirSync(directory) : []);
