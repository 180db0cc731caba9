import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { armor, Encrypter, identityToRecipient } from "age-encryption";
import * as v from "valibot";
import { importCompose } from "../../src/cli/import/compose.ts";
import { ComposeError, parseEnvFile } from "../../src/cli/import/compose-text.ts";
import { importDocker } from "../../src/cli/import/docker.ts";
import { InspectedContainerSchema } from "../../src/cli/import/docker-settings.ts";
import { readEncryptedManifest } from "../../src/daemon/decrypt-manifest.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { parseEnvFile as parseVolumeEnvFile } from "../../src/plan/environment.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

const SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: not-to-be-shown}\n";

/** An identity of no one, and what is encrypted to it. */
const IDENTITY = "AGE-SECRET-KEY-18VR8KA7EKFQG4TT7TU53EGC482QRJ3NVEQQE64KARS0TMR5TYYRS05FXKV";

const encrypter = new Encrypter();
encrypter.addRecipient(await identityToRecipient(IDENTITY));
const encrypted = await encrypter.encrypt(SECRET);
const directory = mkdtempSync(join(tmpdir(), "kubelet-ts-test-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const identityFile = join(directory, "identity.txt");
writeFileSync(identityFile, `${IDENTITY}\n`);

/** Encrypted manifests come from directories and URLs. */
const age: FuzzTarget = {
  name: "age",
  seeds: [
    Buffer.from(encrypted).toString("latin1"),
    armor.encode(encrypted),
    "age-encryption.org/v1\n-> X25519 abc\n",
    `age-encryption.org/v1\n${"-> X25519 a\n\n".repeat(5_000)}---`,
    `-----BEGIN AGE ENCRYPTED FILE-----\n${"A".repeat(50_000)}`,
    "-> scrypt bBjlhJVYZeE4aqUdmtRHfw 30\n",
  ],
  tokens: ["-> ", "X25519 ", "scrypt ", " 30\n", "\n", "--- ", "age-encryption.org/v1\n", "=", "A", "\x00", "\xff"],
  async run(input) {
    const how = {
      file: "f.age",
      nodeName: "n",
      source: "file",
      strictness: "standard",
      allowPrivileged: true,
    } as const;
    const { findings } = await readEncryptedManifest(Buffer.from(input, "latin1"), how, identityFile, readManifest);
    const shown = findings.find(({ message }) => message.includes("not-to-be-shown"));
    if (shown) throw new Error(`a finding shows the text: ${shown.message}`);
  },
};

const compose: FuzzTarget = {
  name: "compose",
  seeds: [
    readFileSync(join(import.meta.dir, "../../examples/compose/compose.yaml"), "utf8"),
    "services:\n  web:\n    image: a:1\n    ports: ['8080-8090:80-90', {target: 1}]\n    command: sh -c 'x \"y\"'\n    mem_limit: 1g\n",
    "services:\n  a: {image: b, environment: {A: 'b'}, healthcheck: {test: [CMD, x], interval: 1m30s}, volumes: ['a:/b:ro']}\n",
    `services: {a: {image: "$\{B:-c}", command: "$\{C?no C}"}}\n`,
    `services: {a: {image: "${"$".repeat(8_000)}"}}\n`,
    `services: {a: {image: "${"${A:-".repeat(2_000)}"}}\n`,
    `services: {a: {image: b, ports: ["1-65535:1-65535/tcp"], command: "${"'\\".repeat(3_000)}"}}\n`,
  ],
  tokens: [
    ...["${", "}", "$$", ":-", "\n", "  ", ": ", "- ", "[", "]", "{", "'", '"'],
    ..."services image ports volumes command healthcheck environment deploy extends include !reset null 1-65535 tmpfs".split(
      " ",
    ),
    ..."mem_limit 99999999999999999999g".split(" "),
  ],
  run(input) {
    const environment = parseEnvFile(input.slice(0, 2_000));
    parseVolumeEnvFile(input);
    try {
      importCompose({
        files: ["/d/compose.yaml", "/d/compose.yaml"],
        project: "p",
        directory: "/d",
        environment,
        readFile: () => input,
        findDevices: () => [],
      });
    } catch (error) {
      if (!(error instanceof ComposeError)) throw error;
    }
  },
};

const inspected = {
  Id: "a".repeat(64),
  Name: "/web",
  Image: "sha256:b",
  Config: { Image: "a:1", Env: ["A=b"], Cmd: ["sh"], Healthcheck: { Test: ["CMD-SHELL", "x"], Interval: 1e9 } },
  HostConfig: {
    NetworkMode: "bridge",
    PortBindings: { "80/tcp": [{ HostIp: "", HostPort: "8080" }] },
    RestartPolicy: { Name: "always" },
    NanoCpus: 1e9,
    Memory: 1 << 30,
    Mounts: [],
    Tmpfs: { "/t": "size=1m" },
    Sysctls: { "net.core.somaxconn": "1" },
    ExtraHosts: ["a:1.2.3.4"],
  },
  Mounts: [{ Type: "bind", Source: "/a", Destination: "/b", RW: true }],
  NetworkSettings: { Networks: { bridge: {} } },
};

/** Inspections of containers that were started by hand. */
const dockerInspect: FuzzTarget = {
  name: "docker inspect",
  seeds: [JSON.stringify(inspected), JSON.stringify({ ...inspected, HostConfig: { NetworkMode: "container:web" } })],
  tokens: ['"', "{", "}", "[", "]", ",", ":", "null", "0", "-1", "1e400", "/tcp", "container:", "host", "\\u0000"],
  run(input) {
    let value: unknown;
    try {
      value = JSON.parse(input);
    } catch {
      return;
    }
    const parsed = v.safeParse(InspectedContainerSchema, value);
    if (!parsed.success) return;
    try {
      importDocker([{ container: parsed.output }], () => []);
    } catch (error) {
      if (!(error instanceof ComposeError)) throw error;
    }
  },
};

export const IMPORT_TARGETS: readonly FuzzTarget[] = [age, compose, dockerInspect];
