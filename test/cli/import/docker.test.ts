import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { type DockerContainer, importDocker } from "../../../src/cli/import/docker.ts";
import {
  InspectedContainerSchema,
  InspectedImageSchema,
  noteSettings,
} from "../../../src/cli/import/docker-settings.ts";
import { ImportNotes } from "../../../src/cli/import/pod-parts.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

// biome-ignore lint/suspicious/noExplicitAny: the shape of a manifest is checked by readManifest
type Manifest = Record<string, any>;
type Fields = Readonly<Record<string, unknown>>;

const ID = "2795034f02af581f42a79c1a76e46066d0dcf51846fb2180d1a278a743943db7";
const IMAGE_ID = `sha256:${"b".repeat(64)}`;

/** The engine's answer for `docker run -d --name web nginx:1.22`. */
function container({ config = {}, host = {}, ...rest }: Fields & { config?: Fields; host?: Fields } = {}) {
  return v.parse(InspectedContainerSchema, {
    Id: ID,
    Name: "/web",
    Image: IMAGE_ID,
    Config: { Hostname: ID.slice(0, 12), Image: "nginx:1.22", Env: ["PATH=/bin"], Cmd: ["serve"], ...config },
    HostConfig: {
      NetworkMode: "default",
      IpcMode: "private",
      ShmSize: 67_108_864,
      Runtime: "runc",
      LogConfig: { Type: "json-file", Config: {} },
      RestartPolicy: { Name: "no", MaximumRetryCount: 0 },
      MaskedPaths: ["/proc/kcore"],
      ReadonlyPaths: ["/proc/bus"],
      ConsoleSize: [0, 0],
      CgroupnsMode: "host",
      ...host,
    },
    Mounts: [],
    NetworkSettings: { Ports: {}, Networks: { bridge: { Aliases: null, IPAMConfig: null } } },
    ...rest,
  });
}

const image = (config: Fields = {}) =>
  v.parse(InspectedImageSchema, {
    Id: IMAGE_ID,
    RepoTags: ["nginx:1.22"],
    Config: { Env: ["PATH=/bin"], Cmd: ["serve"], ...config },
  });

function convert(...given: DockerContainer[]) {
  const { manifests, notes } = importDocker(given, (path) =>
    path === "/dev/ttyS0" ? [{ path, type: "CharDevice" }] : [],
  );
  const text = manifests.map((object) => JSON.stringify(object)).join("\n---\n");
  // The text begins with a comment because a stream that begins with { is one JSON value.
  const read = readManifest(Buffer.from(`# docker\n${text}`), { file: "f", nodeName: "n", source: "file" });
  return { manifests: manifests as Manifest[], notes: notes.slice(1), first: notes[0], read };
}

/** The pod of one container, made from an image with these settings. */
function podOf(fields: Parameters<typeof container>[0], ofImage: Fields = {}) {
  const result = convert({ container: container(fields), image: image(ofImage) });
  const pod = result.manifests.at(-1)!;
  return { ...result, pod, spec: pod.spec as Manifest, main: pod.spec.containers[0] as Manifest };
}

describe("a container of docker run", () => {
  test("that differs from its image in nothing is a pod with nothing but the image", () => {
    const { pod, notes, first, read } = podOf({});
    expect(pod).toEqual({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      spec: {
        enableServiceLinks: false,
        containers: [{ name: "web", image: "nginx:1.22", imagePullPolicy: "IfNotPresent" }],
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 10,
      },
    });
    expect(notes).toEqual([]);
    expect(first).toBe("stop the containers before the pods start: docker update --restart=no web && docker stop web");
    expect(read.findings).toEqual([]);
  });

  test.each([
    // name, container, image, what is written
    ["arguments", { Cmd: ["a", "$(b)$$"] }, {}, { args: ["a", "$$(b)$$$$"] }],
    ["an entrypoint", { Entrypoint: ["/x"], Cmd: null }, { Entrypoint: ["/e"] }, { command: ["/x"] }],
    ["an entrypoint with arguments", { Entrypoint: ["/x"], Cmd: ["1"] }, {}, { command: ["/x"], args: ["1"] }],
    ["other arguments", { Entrypoint: ["/e"], Cmd: ["1"] }, { Entrypoint: ["/e"] }, { args: ["1"] }],
    ["no arguments", { Entrypoint: ["/e"], Cmd: null }, { Entrypoint: ["/e"] }, { command: ["/e"] }],
    ["no entrypoint", { Entrypoint: null, Cmd: ["sh"] }, { Entrypoint: ["/e"] }, { command: ["sh"] }],
    ["a working directory", { WorkingDir: "/w" }, {}, { workingDir: "/w" }],
    ["the working directory of the image", { WorkingDir: "/w" }, { WorkingDir: "/w" }, {}],
    ["a terminal", { Tty: true, OpenStdin: true }, {}, { tty: true, stdin: true }],
    ["a stop signal", { StopSignal: "INT" }, {}, { lifecycle: { stopSignal: "SIGINT" } }],
    ["the stop signal of the image", { StopSignal: "SIGQUIT" }, { StopSignal: "SIGQUIT" }, {}],
    ["a user", { User: "5:6" }, {}, { securityContext: { runAsUser: 5, runAsGroup: 6 } }],
    ["the user of the image", { User: "nginx" }, { User: "nginx" }, {}],
    ["variables", { Env: ["PATH=/bin", "A=$(B)"] }, {}, { env: [{ name: "A", value: "$$(B)" }] }],
  ] as const)("%s", (_, config, ofImage, expected) => {
    const { main, notes, read } = podOf({ config }, ofImage);
    expect(main).toEqual({ name: "web", image: "nginx:1.22", imagePullPolicy: "IfNotPresent", ...expected });
    expect(notes).toEqual([]);
    expect(read.findings).toEqual([]);
  });

  const HALF = { cpu: "500m" };
  test.each([
    [
      "limits",
      { Memory: 67_108_864, NanoCpus: 5e8 },
      { limits: { ...HALF, memory: "64Mi" }, requests: { cpu: "0", memory: "0" } },
    ],
    ["shares below the limit", { NanoCpus: 5e8, CpuShares: 256 }, { limits: HALF, requests: { cpu: "250m" } }],
    ["shares above the limit", { NanoCpus: 5e8, CpuShares: 1024 }, { limits: HALF, requests: HALF }],
    ["a quota", { CpuQuota: 150_000 }, { limits: { cpu: "1500m" }, requests: { cpu: "0" } }],
    ["a period's quota", { CpuQuota: 50_000, CpuPeriod: 25_000 }, { limits: { cpu: "2000m" }, requests: { cpu: "0" } }],
    ["a reservation", { MemoryReservation: 1000 }, { requests: { memory: "1k" } }],
  ])("resources: %s", (_, host, resources) => {
    const { main, read } = podOf({ host });
    expect(main.resources).toEqual(resources);
    expect(read.findings).toEqual([]);
  });

  test.each([
    ["no", "Never"],
    ["always", "Always"],
    ["unless-stopped", "Always"],
    ["on-failure", "OnFailure"],
  ])("restart %s is %s", (Name, expected) => {
    expect(podOf({ host: { RestartPolicy: { Name, MaximumRetryCount: 0 } } }).spec.restartPolicy).toBe(expected);
  });

  test("secrets are split off by the name of the variable, or by a URL with a password", () => {
    const Env = ["DB_PASSWORD=hunter2", "JWT_KEY=k", "KEYBOARD=us", "DB=postgres://u:pw@h/d", "URL=http://h:80/"];
    const { manifests, main } = podOf({ config: { Env } });
    expect(manifests[0]).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "web-env" },
      stringData: { DB_PASSWORD: "hunter2", JWT_KEY: "k", DB: "postgres://u:pw@h/d" },
    });
    expect(main.env.filter((entry: Manifest) => "value" in entry)).toEqual([
      { name: "KEYBOARD", value: "us" },
      { name: "URL", value: "http://h:80/" },
    ]);
  });

  test("ports: those given, those that the engine chose, those of both address families once", () => {
    const port = (HostIp: string, HostPort: string) => ({ HostIp, HostPort });
    const { main, notes } = podOf(
      {
        config: { ExposedPorts: { "80/tcp": {}, "53/udp": {}, "9/tcp": {}, "7/tcp": {} } },
        host: { PortBindings: { "80/tcp": [port("127.0.0.1", "8080")], "53/udp": [port("", "")] } },
        NetworkSettings: {
          Ports: { "80/tcp": [port("127.0.0.1", "8080")], "53/udp": [port("0.0.0.0", "32768"), port("::", "32768")] },
          Networks: {},
        },
      },
      { ExposedPorts: { "7/tcp": {} } },
    );
    expect(main.ports).toEqual([
      { containerPort: 80, hostPort: 8080, hostIP: "127.0.0.1" },
      { containerPort: 53, hostPort: 32_768, protocol: "UDP" },
      { containerPort: 9 },
    ]);
    expect(notes).toEqual(["web: -p 53/udp: the engine chose port 32768: it is fixed in the pod"]);
  });

  test("volumes, binds, tmpfs, shared memory and devices", () => {
    const anonymous = "a".repeat(64);
    const mount = (fields: Fields) => ({ Type: "volume", RW: true, Mode: "", Propagation: "", ...fields });
    const { spec, main, notes, read, pod } = podOf({
      host: {
        Tmpfs: { "/run": "size=64m,noexec,exec,uid=33,nr_inodes=9" },
        ShmSize: 1_048_576,
        Devices: [
          { PathOnHost: "/dev/ttyS0", PathInContainer: "/dev/tty0", CgroupPermissions: "rwm" },
          { PathOnHost: "/dev/snd", PathInContainer: "/dev/snd", CgroupPermissions: "rwm" },
        ],
        Mounts: [{ Type: "tmpfs", Target: "/t", TmpfsOptions: { SizeBytes: 4096, Mode: 0o750 } }],
      },
      Mounts: [
        mount({ Name: "db", Source: "/x", Destination: "/data" }),
        mount({ Name: anonymous, Source: "/x", Destination: "/anon" }),
        mount({ Type: "bind", Source: "/srv", Destination: "/srv", RW: false, Propagation: "rslave" }),
        mount({ Type: "tmpfs", Destination: "/t" }),
      ],
    });
    const sources = Object.fromEntries(spec.volumes.map(({ name, ...source }: Manifest) => [name, source]));
    expect(main.volumeMounts.map((it: Manifest) => ({ ...it, name: sources[it.name] }))).toEqual([
      { mountPath: "/data", name: { persistentVolumeClaim: { claimName: "db" } } },
      { mountPath: "/anon", name: { persistentVolumeClaim: { claimName: anonymous } } },
      { mountPath: "/srv", name: { hostPath: { path: "/srv" } }, readOnly: true, mountPropagation: "HostToContainer" },
      { mountPath: "/t", name: { emptyDir: { medium: "Memory", sizeLimit: "4Ki" } } },
      { mountPath: "/run", name: { emptyDir: { medium: "Memory", sizeLimit: "64Mi" } } },
      { mountPath: "/dev/tty0", name: { hostPath: { path: "/dev/ttyS0", type: "CharDevice" } } },
      { mountPath: "/dev/shm", name: { emptyDir: { medium: "Memory", sizeLimit: "1Mi" } } },
    ]);
    expect(notes.map((note) => note.split(":").slice(0, 2).join(":"))).toEqual([
      "web: -v /anon",
      "web: --device /dev/snd",
      "web: --tmpfs",
    ]);
    expect(notes).toContain("web: --tmpfs: /run: nr_inodes=9 is not carried over");
    expect(pod.metadata.annotations).toEqual({ "kubelet-ts.io/empty-dir-options": "t:mode=0750;run:noexec,uid=33" });
    expect(read.findings).toEqual([]);
  });

  test("security settings", () => {
    const { main, spec, notes } = podOf({
      host: {
        CapAdd: ["CAP_NET_ADMIN"],
        MaskedPaths: [],
        CapDrop: ["ALL"],
        ReadonlyRootfs: true,
        GroupAdd: ["5", "audio"],
        SecurityOpt: ["no-new-privileges", "seccomp={}", "apparmor=unconfined", "label=type:spc_t", "label=disable"],
        Sysctls: { "net.ipv4.tcp_syncookies": "0", "net.ipv4.ip_forward": "1" },
      },
    });
    expect(main.securityContext).toEqual({
      capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] },
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      procMount: "Unmasked",
      appArmorProfile: { type: "Unconfined" },
      seLinuxOptions: { type: "spc_t" },
    });
    expect(spec.securityContext.supplementalGroups).toEqual([5]);
    expect(notes).toEqual([
      "web: --security-opt seccomp: put the profile below <root-dir>/seccomp and set seccompProfile.localhostProfile",
      "web: --sysctl net.ipv4.ip_forward: start kubelet-ts with --allowed-unsafe-sysctls=net.ipv4.ip_forward",
      "web: --group-add audio: is not a number: set supplementalGroups",
    ]);
  });

  test.each([{ PidMode: "host" }, { IpcMode: "host" }])("label=disable of the engine with %j needs no note", (host) => {
    expect(podOf({ host: { ...host, SecurityOpt: ["label=disable"] } }).notes).toEqual([]);
  });

  test("two networks, its address and its alias", () => {
    const { pod, notes } = podOf({
      host: { NetworkMode: "shop" },
      NetworkSettings: {
        Ports: {},
        Networks: {
          other: { Aliases: [], Links: ["db:db", "db:sql"] },
          shop: { Aliases: [ID.slice(0, 12), "web", "www"], IPAMConfig: { IPv4Address: "10.1.2.3" } },
        },
      },
    });
    expect(pod.metadata.annotations).toEqual({
      "kubelet-ts.io/network": "shop,other",
      "kubelet-ts.io/ip": "10.1.2.3",
      "kubelet-ts.io/network-aliases": "www",
    });
    expect(pod.spec.hostname).toBeUndefined();
    expect(notes).toEqual([
      "web: --link db:sql: is not carried over: the pod of db needs the name sql in its annotation kubelet-ts.io/network-aliases",
    ]);
  });

  test("a host name with a domain stays", () => {
    expect(podOf({ config: { Hostname: "mail.example.com" } }).pod.spec.hostnameOverride).toBe("mail.example.com");
  });

  test("a health check is a readiness probe", () => {
    const Healthcheck = { Test: ["CMD", "true"], Interval: 5e9, Timeout: 0, StartPeriod: 1.5e9, Retries: 2 };
    const { main, read } = podOf({ config: { Healthcheck } });
    expect(main.readinessProbe).toEqual({
      exec: { command: ["true"] },
      periodSeconds: 5,
      timeoutSeconds: 30,
      failureThreshold: 2,
    });
    expect(read.findings).toEqual([]);
  });

  test("sizes of logs are carried over, other drivers and options are told", () => {
    const logs = (Type: string, Config: object) => {
      const { pod, notes } = podOf({ host: { LogConfig: { Type, Config } } });
      return [pod.metadata.annotations?.["kubelet-ts.io/log-options"], ...notes.map((note) => note.split(": ")[1])];
    };
    expect(logs("json-file", { "max-size": "1m", "max-file": "2" })).toEqual(["max-size=1m,max-file=2"]);
    expect(logs("json-file", { compress: "true" })).toEqual([undefined, "--log-opt compress"]);
    expect(logs("journald", { tag: "a" })).toEqual([undefined, "--log-driver", "--log-opt tag"]);
  });

  test("labels are those of the containers, and of the pod where Kubernetes has such", () => {
    const Labels = { app: "shop", rule: "Host(`x`)", "com.docker.compose.project": "p", "of.image": "1" };
    const { pod, notes } = podOf({ config: { Labels } }, { Labels: { "of.image": "1" } });
    expect(pod.metadata).toEqual({
      name: "web",
      labels: { app: "shop" },
      annotations: { "kubelet-ts.io/container-labels": "app=shop\nrule=Host(`x`)" },
    });
    expect(notes).toEqual([]);
  });

  test("an image without a name, or whose name means another one by now, is reported", () => {
    const unnamed = { container: container({ config: { Image: IMAGE_ID } }), image: { ...image(), RepoTags: [] } };
    expect(convert(unnamed).notes).toEqual([
      "web: image: has no name: docker tag bbbbbbbbbbbb NAME, and write the name here",
    ]);
    const renamed = { container: container(), image: image(), currentImageId: "sha256:c" };
    expect(convert(renamed).notes).toEqual([
      "web: image: nginx:1.22 names another image than the one that runs (bbbbbbbbbbbb)",
    ]);
  });
});

describe("several containers", () => {
  const side = (reference: string) => ({
    container: container({ Id: "c".repeat(64), Name: "/side", host: { NetworkMode: `container:${reference}` } }),
    image: image(),
  });
  const web = { container: container(), image: image() };

  test.each(["web", ID])("that share the network of %s are one pod", (reference) => {
    const { manifests, notes, read } = convert(side(reference), web);
    expect(manifests.map(({ metadata }) => metadata.name)).toEqual(["web"]);
    expect(manifests[0]!.spec.containers.map(({ name }: Manifest) => name)).toEqual(["web", "side"]);
    expect(notes).toEqual([]);
    expect(read.findings).toEqual([]);
  });

  test("whose network is that of a container not given: it is named", () => {
    expect(convert(side("db")).notes).toEqual([
      "side: --network container:db: is not carried over: name that container too, and both become one pod",
    ]);
  });

  test("whose names lead to one name of a pod", () => {
    const [a, b] = [container({ Name: "/a_b" }), container({ Id: "d".repeat(64), Name: "/a.b" })];
    const { manifests } = convert({ container: a }, { container: b });
    expect(manifests.map(({ metadata }) => metadata.name)).toEqual(["a-b", "a-b-2"]);
  });
});

test.each([
  ["--gpus", { DeviceRequests: [{ Count: -1 }] }],
  ["--rm", { AutoRemove: true }],
  ["--cpuset-cpus", { CpusetCpus: "0" }],
  ["--runtime", { Runtime: "nvidia" }],
  ["--memory-swap", { MemorySwap: 100 }],
  ["HostConfig.NewField", { NewField: 1 }],
])("settings that a manifest cannot express are named: %s", (flag, host) => {
  const notes = new ImportNotes();
  noteSettings(container({ host }), notes.of("web: "));
  expect(notes.lines).toHaveLength(1);
  expect(notes.lines[0]).toStartWith(`web: ${flag}: `);
});
