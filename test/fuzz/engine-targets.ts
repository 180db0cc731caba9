import { parseImageUpdatePolicy } from "../../src/base/api/annotations.ts";
import { parseMountPoints } from "../../src/base/files/mount-points.ts";
import { parseTarHeader } from "../../src/base/files/tar.ts";
import { parseKernelRecord } from "../../src/base/host/kmsg.ts";
import { parseDiskstats, parseNetDev } from "../../src/base/host/proc.ts";
import { parseCronSchedule } from "../../src/base/text/cron-schedule.ts";
import { InvalidImageReferenceError, parseImageReference } from "../../src/base/text/image-reference.ts";
import { parseTimeWindow } from "../../src/base/text/time-window.ts";
import { maskUrl } from "../../src/base/text/url.ts";
import { parseUpperDir } from "../../src/docker/docker-pods.ts";
import { parseEvent } from "../../src/docker/engine/docker-client.ts";
import {
  DockerConfigError,
  parseDockerConfig,
  parseLegacyDockerConfig,
} from "../../src/docker/engine/docker-config.ts";
import { DockerProtocolError } from "../../src/docker/engine/docker-error.ts";
import { explain, nextPage, parseChallenge, parseTags, RegistryError } from "../../src/docker/registry-client.ts";
import {
  chooseNetworkConfig,
  describePluginFailure,
  parseCniResult,
  toPodIps,
} from "../../src/kubelet/cni/cni-networks.ts";
import { formatResolvConf, parseResolvConf } from "../../src/plan/pod-dns.ts";
import { parseFilesystems } from "../../src/stats/cadvisor/cadvisor-facts.ts";
import { parseProcCgroup } from "../../src/stats/cgroups/cgroup-layout.ts";
import { type FuzzTarget, mayThrow } from "./fuzz-target.ts";

/** Answers of CNI plugins, and their configuration. */
const cni: FuzzTarget = {
  name: "CNI",
  seeds: [
    '{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"10.1.0.5/24","interface":0}]}',
    '{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24"},"ip6":{"ip":"fd00::5/64"}}',
    '{"code":100,"msg":"broken","details":"x"}',
    '{"cniVersion":"0.4.0","name":"pods","plugins":[{"type":"bridge","capabilities":{"portMappings":true}}]}',
    '{"ips":[{"address":"1.2.3.4","interface":-1}]}',
  ],
  tokens: '" { } [ ] , : ips address interface null -1 1e9 /24 plugins'.split(" "),
  run(input) {
    mayThrow(/^its output is /, () => toPodIps(parseCniResult(input)));
    describePluginFailure({ exitCode: 1, stdout: input, stderr: input });
    chooseNetworkConfig([
      { name: "10-a.conflist", text: input },
      { name: "20-b.conf", text: input },
    ]);
  },
};

/** Lines of the engine's event stream, and its credentials. */
const engineText: FuzzTarget = {
  name: "engine text",
  seeds: [
    '{"Type":"container","Action":"exec_create: sh -c x","Actor":{"ID":"a","Attributes":{"name":"b"}},"time":1,"timeNano":1795324800000000001}',
    '{"auths":{"https://index.docker.io/v1/":{"auth":"dXNlcjpzZWNyZXQ="}},"credsStore":"x","credHelpers":{"gcr.io":"gcloud"}}',
    '{"registry.example:5000":{"username":"u","password":"p"}}',
    `{"auths":{"a":{"auth":"${"=".repeat(10_000)}"}}}`,
  ],
  tokens: [...'" { } [ ] , : auth auths timeNano Action null 1e400 -1'.split(" "), ": "],
  run(input) {
    mayThrow(DockerProtocolError, () => parseEvent(input));
    for (const parse of [parseDockerConfig, parseLegacyDockerConfig]) {
      mayThrow(DockerConfigError, () => parse(input));
    }
  },
};

/** Names and schedules in annotations, flags and manifests. */
const names: FuzzTarget = {
  name: "name or schedule",
  seeds: [
    "*/5 0-23/2 1,15 jan-dec mon-fri",
    "@every 1h30m",
    "0 2 * * sun +3h",
    "0 0 30 2 *",
    `docker.io/library/busybox:1.35@sha256:${"a".repeat(64)}`,
    "semver:^1.2.3",
    "https://user:a@b@host/path#fragment",
    "http://user:secret@",
    `${"a-".repeat(8_000)}!`,
    `0 2 * * *${" ".repeat(8_000)}x`,
    `1${",1".repeat(8_000)} * * * *`,
    `0-59/${"0".repeat(8_000)}1 * * * *`,
  ],
  tokens: [..."* / - , + @ : 0 59 99999999999 mon h # ? // sha256:".split(" "), " ", "@every "],
  run(input) {
    const now = new Date("2026-11-22T05:00:00Z");
    const schedule = parseCronSchedule(input, "Europe/Berlin");
    if (!("problem" in schedule)) schedule.next(now, now);
    const window = parseTimeWindow(input);
    if (!("problem" in window)) {
      window.isOpen(now);
      window.nextOpening(now);
    }
    parseImageUpdatePolicy(input);
    maskUrl(input);
    mayThrow(InvalidImageReferenceError, () => parseImageReference(input));
  },
};

/** Files of the kernel and of the host; programs choose names in them. */
const hostText: FuzzTarget = {
  name: "host text",
  seeds: [
    "36 35 98:0 /a /mnt\\0401 rw,noatime master:1 - ext4 /dev/root rw,errors=continue\n",
    "1 0 0:28 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/c\\054d,workdir=/e\n",
    "12:memory:/kubepods/pod1\n0::/\n1:name=systemd:/x:y\n",
    "nameserver 1.2.3.4\nsearch a b\noptions ndots:5\n",
    "6,1234,5678901,-;Memory cgroup out of memory: Killed process 1 (a)\\x0a\n SUBSYSTEM=x\n",
    "Inter-|   Receive\n eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
    " 8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
    "\\".repeat(16_000),
    `nameserver ${" ".repeat(16_000)}x`,
  ],
  tokens: [...":|/|overlay|upperdir=|,|0|;|\n| |\\040|\\| - |nameserver |options |\t".split("|")],
  run(input) {
    parseMountPoints(input);
    parseFilesystems(input);
    parseUpperDir(input);
    parseProcCgroup(input);
    formatResolvConf(parseResolvConf(input));
    parseKernelRecord(input);
    parseNetDev(input);
    parseDiskstats(input);
  },
};

/** Headers and bodies that a registry answers with. */
const registry: FuzzTarget = {
  name: "registry answer",
  seeds: [
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull"',
    '</v2/a/tags/list?n=2&last=b>; rel="next"',
    '<http://[>; rel="next"',
    '<http://registry//other.example/x>; rel="next"',
    '{"tags":["1.0","latest",7]}',
    '{"errors":[{"message":"denied"}]}',
    `Bearer ${"a".repeat(20_000)}`,
    "<".repeat(20_000),
    `Basic ${'a="'.repeat(5_000)}`,
  ],
  tokens: [...'< > ; rel= " = , realm http:// [ ] { } : tags errors'.split(" "), "\\", "Bearer ", "Basic "],
  run(input) {
    parseChallenge(input);
    const next = nextPage(input, "/v2/a/tags/list");
    if (next !== undefined && new URL(next, "https://registry/").origin !== "https://registry") {
      throw new Error(`the next page is ${next}`);
    }
    const answer = { status: 200, headers: new Headers(), bytes: Buffer.from(input) };
    explain(answer);
    mayThrow(RegistryError, () => parseTags(answer, "registry"));
  },
};

/** The headers of a bundle. */
const tarHeaders: FuzzTarget = {
  name: "tar header",
  seeds: ["", "index.json\0", "a".repeat(600), "\xff".repeat(512), "\x80".repeat(512)],
  tokens: [..."7 0 ustar / ..".split(" "), "\0", " ", "\x80", "\xff"],
  run(input) {
    const block = new Uint8Array(512);
    block.set(Buffer.from(input, "latin1").subarray(0, 512));
    // A right sum, so that what lies behind it is reached.
    const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
    block.set(Buffer.from(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
    try {
      const header = parseTarHeader(block);
      if (header && (!Number.isSafeInteger(header.size) || header.size < 0)) throw new Error(`size ${header.size}`);
    } catch (error) {
      if (!/^a header /.test((error as Error).message)) throw error;
    }
  },
};

export const ENGINE_TARGETS: readonly FuzzTarget[] = [cni, engineText, names, hostText, registry, tarHeaders];
