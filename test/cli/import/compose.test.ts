// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Compose files
import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import type { Json } from "../../../src/base/text/json.ts";
import { importCompose } from "../../../src/cli/import/compose.ts";
import { ComposeError, originOf, parseCompose, parseEnvFile, toSeconds } from "../../../src/cli/import/compose-text.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

// biome-ignore lint/suspicious/noExplicitAny: the shape of a manifest is checked by readManifest
type Manifest = Record<string, any>;

const FILES: Readonly<Record<string, string>> = {
  "/srv/shop/web.env": "A=1\nexport B='two words' \n# c\nTOKEN=t0p\n",
  "/srv/shop/app.conf": "listen 80\n",
};

function convert(file: Json, environment: Readonly<Record<string, string>> = {}) {
  const { manifests, notes } = importCompose({
    files: ["/srv/shop/compose.yaml"],
    project: "shop",
    directory: "/srv/shop",
    environment: new Map(Object.entries(environment)),
    readFile: (path) => (path === "/srv/shop/compose.yaml" ? JSON.stringify(file) : FILES[path]),
    findDevices: (path) => {
      const names = path === "/dev/dri" ? ["/card0", "/by-path/gpu"] : [""];
      const type = path.startsWith("/dev/loop") ? "BlockDevice" : "CharDevice";
      return path.startsWith("/dev/nvidia") ? [] : names.map((name) => ({ path: path + name, type }));
    },
    hostGateway: "172.17.0.1",
  });
  const text = manifests.map((object) => JSON.stringify(object)).join("\n---\n");
  // The text begins with a comment because a stream that begins with { is one JSON value.
  const read = readManifest(Buffer.from(`# compose\n${text}`), { file: "f", nodeName: "n", source: "file" });
  const withoutLines = notes.map((note) => note.replace(/^compose\.yaml:1: /, ""));
  return { manifests: manifests as Manifest[], notes: withoutLines, read };
}

const podOf = (manifests: Manifest[], name = "web") =>
  manifests.find(({ kind, metadata }) => kind === "Pod" && metadata.name === name);

const service = (fields: { readonly [key: string]: Json }): Json => ({
  services: { web: { image: "nginx:1.22", ...fields } },
});

describe("what is written passes validation", () => {
  const FULL: Json = {
    services: {
      web: {
        image: "nginx:1.22",
        command: "nginx -g 'daemon off;'",
        ports: ["8080:80", "127.0.0.1:8443:443/tcp", "53:53/udp", "3000-3001:3000-3001"],
        volumes: ["html:/usr/share/nginx/html:ro", "./conf:/etc/nginx/conf.d", "/cache"],
        environment: { LEVEL: "info", DB_PASSWORD: "hunter2" },
        env_file: "web.env",
        restart: "unless-stopped",
        healthcheck: { test: ["CMD", "nginx", "-t"], interval: "5s", retries: 2 },
        depends_on: { db: { condition: "service_healthy" } },
        deploy: { resources: { limits: { cpus: "0.5", memory: "256M" }, reservations: { memory: "64m" } } },
        user: "101:101",
        cap_drop: ["ALL"],
        read_only: true,
        tmpfs: ["/run:size=16m"],
        configs: [{ source: "app", target: "/etc/app.conf" }],
        secrets: [{ source: "key", uid: "33", gid: "0", mode: "0400" }],
        stop_grace_period: "1m30s",
        stop_signal: "SIGQUIT",
      },
      db: {
        image: "postgres:15",
        expose: ["5432"],
        volumes: [{ type: "volume", source: "data", target: "/var/lib/postgresql/data" }],
      },
    },
    volumes: { html: null, data: { external: true } },
    configs: { app: { file: "./app.conf" } },
    secrets: { key: { environment: "KEY" } },
  };

  test("without findings", () => {
    const { read } = convert(FULL, { KEY: "k3y" });
    expect(read.findings).toEqual([]);
    expect(read.pods.map(({ pod }) => pod.metadata.name)).toEqual(["web-n", "db-n"]);
    // Docker reserves nothing for a limit.
    expect(read.pods[0]?.pod.spec.containers[0]?.resources.requests).toEqual({ cpu: "0", memory: "64Mi" });
  });

  test("the pod of a service", () => {
    const { manifests, notes } = convert(FULL, { KEY: "k3y" });
    expect(podOf(manifests)).toMatchObject({
      metadata: { annotations: { "kubelet-ts.io/network": "shop", "kubelet-ts.io/depends-on": "default/db=Ready" } },
      spec: {
        restartPolicy: "Always",
        terminationGracePeriodSeconds: 90,
        os: { name: "linux" },
        containers: [
          {
            args: ["nginx", "-g", "daemon off;"],
            imagePullPolicy: "IfNotPresent",
            lifecycle: { stopSignal: "SIGQUIT" },
            resources: { limits: { cpu: "0.5", memory: "256Mi" }, requests: { cpu: "0", memory: "64Mi" } },
            readinessProbe: { exec: { command: ["nginx", "-t"] }, periodSeconds: 5, failureThreshold: 2 },
            securityContext: {
              runAsUser: 101,
              runAsGroup: 101,
              capabilities: { drop: ["ALL"] },
              readOnlyRootFilesystem: true,
            },
            ports: [
              { containerPort: 80, hostPort: 8080 },
              { containerPort: 443, hostPort: 8443, hostIP: "127.0.0.1" },
              { containerPort: 53, hostPort: 53, protocol: "UDP" },
              { containerPort: 3000, hostPort: 3000 },
              { containerPort: 3001, hostPort: 3001 },
            ],
          },
        ],
      },
    });
    expect(podOf(manifests)!.spec.volumes).toEqual([
      { name: "usr-share-nginx-html", persistentVolumeClaim: { claimName: "shop_html" } },
      { name: "etc-nginx-conf-d", hostPath: { path: "/srv/shop/conf" } },
      { name: "cache", persistentVolumeClaim: { claimName: "shop_web-cache" } },
      { name: "run", emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
      { name: "etc-app-conf", configMap: { name: "web-app" } },
      { name: "run-secrets-key", secret: { secretName: "web-key", defaultMode: 0o400 } },
    ]);
    expect(podOf(manifests)!.spec.securityContext.fsGroup).toBe(33);
    expect(podOf(manifests, "db")!.spec.volumes[0].persistentVolumeClaim.claimName).toBe("data");
    expect(notes[0]).toBe("create the network of the pods first: docker network create shop");
  });

  test("values that look secret are in a Secret, in no pod and in no note", () => {
    const { manifests, notes } = convert(FULL, { KEY: "k3y" });
    const secret = manifests.find(({ metadata }) => metadata.name === "web-env");
    expect(secret).toMatchObject({ kind: "Secret", stringData: { DB_PASSWORD: "hunter2", TOKEN: "t0p" } });
    expect(JSON.stringify([podOf(manifests), notes])).not.toMatch(/hunter2|t0p|k3y/);
    expect(podOf(manifests)!.spec.containers[0].env).toContainEqual({ name: "B", value: "two words" });
  });
});

/** Keys of a service => fields of its pod. */
const KEYS = `
network_mode: host, ports: ["80:80"] => hostNetwork: true
pid: host => hostPID: true
extra_hosts: ["a:10.0.0.1"] => hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
extra_hosts: {a: ["10.0.0.1", "[::1]"]} => hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: "::1", hostnames: [a]}]
extra_hosts: ["host.docker.internal:host-gateway"] => hostAliases: [{ip: 172.17.0.1, hostnames: [host.docker.internal]}]
dns: 9.9.9.9 => dnsPolicy: None, dnsConfig: {nameservers: [9.9.9.9]}
restart: "on-failure:3" => restartPolicy: OnFailure
tty: false => restartPolicy: Never
sysctls: {net.core.somaxconn: 1024} => securityContext: {sysctls: [{name: net.core.somaxconn, value: "1024"}]}
gpus: all => containers: [{resources: {limits: {nvidia.com/gpu=all: "1"}}}]
gpus: [{count: 2}, {device_ids: ["3"]}] => containers: [{resources: {limits: {nvidia.com/gpu: "2", nvidia.com/gpu=3: "1"}}}]
group_add: ["44", video] => securityContext: {supplementalGroups: [44]}
devices: [/dev/loop0] => volumes: [{name: dev-loop0, hostPath: {path: /dev/loop0, type: BlockDevice}}]
devices: ["/dev/dri/:/dev/gpus"] => volumes: [{name: dev-gpus-card0, hostPath: {path: /dev/dri/card0, type: CharDevice}}, {name: dev-gpus-by-path-gpu, hostPath: {path: /dev/dri/by-path/gpu, type: CharDevice}}]
devices: ["/dev/ttyUSB0:/dev/modem"] => volumes: [{name: dev-modem, hostPath: {path: /dev/ttyUSB0, type: CharDevice}}]
hostname: mail.example.com => hostnameOverride: mail.example.com
user: "root:44" => containers: [{securityContext: {runAsUser: 0, runAsGroup: 44}}]
privileged: "yes", tty: "true", read_only: "no" => containers: [{securityContext: {privileged: true}, tty: true}]
ports: ["::1:25:25", "[::1]:26:26"] => containers: [{ports: [{containerPort: 25, hostPort: 25, hostIP: "::1"}, {containerPort: 26, hostPort: 26, hostIP: "::1"}]}]
cpus: 0.5, cpu_shares: 1024, mem_limit: 64m, mem_reservation: 1g => containers: [{resources: {limits: {cpu: "0.5"}, requests: {cpu: "0.5", memory: 64Mi}}}]
volumes: ["v:/v"], volumes_from: [web] => containers: [{volumeMounts: [{name: v, mountPath: /v}]}]
volumes: [/v, "v:/v/", {type: tmpfs, target: /v}], tmpfs: [/v] => containers: [{volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {medium: Memory}}]
pull_policy: always => containers: [{imagePullPolicy: Always}]
healthcheck: {test: [CMD, a], start_period: 5m} => containers: [{readinessProbe: {exec: {command: [a]}, periodSeconds: 30, timeoutSeconds: 30, failureThreshold: 3}}]
healthcheck: {test: [CMD, a], start_period: 5m, start_interval: 2s} => containers: [{startupProbe: {exec: {command: [a]}, periodSeconds: 2, timeoutSeconds: 30, failureThreshold: 2147483647}, readinessProbe: {periodSeconds: 30}}]
security_opt: ["systempaths=unconfined"] => containers: [{securityContext: {procMount: Unmasked}}]
security_opt: ["label:disable"] => containers: [{securityContext: {seLinuxOptions: {type: spc_t}}}]
entrypoint: [a], user: "1", ports: ["80:80"], healthcheck: {test: b}, environment: {A: b}, pre_start: [{command: c, user: root, image: d, environment: [E=f]}, {command: [g]}] => initContainers: [{name: web-pre-start-1, image: d, command: [a], args: [c], env: [{name: A, value: b}, {name: E, value: f}], securityContext: {runAsUser: 0}}, {name: web-pre-start-2, image: "nginx:1.22", args: [g]}]
volumes: ["v:/v", /w], pre_start: [{command: c, volumes: ["u:/v"]}] => initContainers: [{volumeMounts: [{name: v-2, mountPath: /v}, {name: w, mountPath: /w}]}], containers: [{volumeMounts: [{name: v}, {name: w}]}]
entrypoint: [], command: [nginx, -t] => containers: [{command: [nginx, -t]}]
entrypoint: [sh, -c], command: [echo $(HOME)] => containers: [{command: [sh, -c], args: [echo $$(HOME)]}]`;

describe("keys", () => {
  test.each(KEYS.trim().split("\n"))("%s", (row) => {
    const [fields, spec] = row.split(" => ").map((part) => parse(`{${part}}`));
    const { manifests, read } = convert(service(fields));
    expect(podOf(manifests)!.spec).toMatchObject(spec);
    expect(read.findings.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  test.each<[{ readonly [key: string]: Json }, string]>([
    [{ logging: { driver: "syslog" } }, "services.web.logging.driver: is not carried over"],
    [{ build: "." }, "services.web.build: images are not built"],
    [{ scale: 2, pre_start: [{ command: "a" }] }, "services.web.pre_start: runs before each container of the service"],
    [{ pre_start: [{ command: "a", cpuset: "0" }] }, "services.web.pre_start[0].cpuset: is not carried over"],
    [{ user: "nginx" }, "services.web.user: nginx is not a number"],
    [{ ports: ["80"] }, "services.web.ports[0]: has no published port"],
    [{ depends_on: ["db"] }, "services.web.depends_on.db: there is no such service"],
    [{ depends_on: { db: { restart: true } } }, "services.web.depends_on.db: restart is not carried over"],
    [{ networks: { lan: { aliases: ["a b"] } } }, 'services.web.networks: the alias "a b" is not carried over'],
    [
      { networks: { lan: { ipv4_address: "10.0.0.2", ipv6_address: "fd00::2" } } },
      "services.web.networks: fd00::2 is not carried over: a pod has one fixed address",
    ],
    [{ provider: { type: "x" } }, "services.web.provider: is no container, and is left out"],
    [{ pull_policy: "daily" }, "services.web.pull_policy: daily is not carried over: the annotations"],
    [{ entrypoint: "" }, "services.web.entrypoint: is empty, and that of the image is used"],
    [{ command: [] }, "services.web.command: is empty, and that of the image is used"],
    [{ extra_hosts: ["h:host-gateway"] }, "services.web.extra_hosts: h is 172.17.0.1, the address of docker0"],
    [
      { volumes: [{ type: "bind", source: "/a", target: "/a", bind: { create_host_path: false } }] },
      "services.web.volumes[0]: an absent source becomes an empty directory: hostPath.type Directory or File refuses it",
    ],
    [
      { volumes: ["/a:/a:shared"] },
      "services.web.volumes[0]: the propagation shared is not carried over: write rshared",
    ],
    [
      { deploy: { restart_policy: { condition: "any", delay: "5s" } } },
      "services.web.deploy.restart_policy.delay: is not carried over: delays grow",
    ],
    [{ imag: "a" }, "services.web.imag: is not a key of a Compose file here; did you mean image?"],
    [{ restart: "on_failure" }, "services.web.restart: is not understood and is not carried over: write it as"],
    [{ dns: [{ A: "b" }] }, "services.web.dns[0]: is a map and is not carried over: items of dns are words"],
    [{ restart: { policy: "always" } }, "services.web.restart: is a map and is not carried over"],
    [{ ports: ["8080:80:90:1"] }, "services.web.ports[0]: is not a port"],
    [{ mem_limit: "1gig" }, "services.web.mem_limit: is not understood"],
    [{ stop_grace_period: "1minute" }, "services.web.stop_grace_period: is not understood"],
    [{ deploy: { replicas: "two" } }, "services.web.deploy.replicas: is not understood"],
    [{ environment: ["A"] }, "services.web.environment.A: has no value"],
    [{ network_mode: "service:x" }, "services.web.network_mode: service:x is not carried over: it is no service"],
    [{ pid: "container:x" }, "services.web.pid: container:x is not carried over"],
    [{ network_mode: "none" }, "services.web.network_mode: none is not carried over: every pod has a network"],
    [
      { scale: 2, restart: "no" },
      "services.web.restart: no is not carried over: containers of a Deployment are always",
    ],
    [{ scale: 2, ports: ["127.0.0.1:80:80"] }, "services.web.ports: 127.0.0.1:80 is not published: a Service listens"],
    [
      { deploy: { resources: { limits: { pids: 5 } } } },
      "services.web.deploy.resources.limits.pids: is not carried over: --pod-max-pids",
    ],
    [{ privileged: true }, "services.web.privileged: start kubelet-ts with --allow-privileged"],
    [{ sysctls: { "net.core.somaxconn": 9 } }, "services.web.sysctls.net.core.somaxconn: start kubelet-ts with"],
    [{ tmpfs: "/run:size=1m,nr_inodes=9" }, "services.web.tmpfs: /run: nr_inodes=9 is not carried over"],
    [{ hostname: "My.Host" }, "services.web.hostname: My.Host is not a DNS name: the host name is my-host"],
    [{ labels: ["a b=c"] }, "services.web.labels.a b: is not carried over"],
    [{ environment: { A: "${NONE}" } }, "${NONE}: has no value"],
  ])("%j is named in a note", (fields, note) => {
    const { notes } = convert(service(fields));
    expect(notes.filter((line) => line.startsWith(note))).toHaveLength(1);
  });
});

const local = (type: string, o: string, device: string) => ({ driver: "local", driver_opts: { type, o, device } });
const exported = { nfs: { server: "nas", path: "/export" } };
const claim = { persistentVolumeClaim: { claimName: "shop_v" } };
const create = (options: string) =>
  `create it first, or it is an empty local volume: docker volume create --driver ${options} shop_v`;

test.each<[declared: Json, source: object, note: string]>([
  [local("nfs", "addr=10.0.0.2,rw,nfsvers=4.1", ":/export"), { nfs: { server: "10.0.0.2", path: "/export" } }, ""],
  [local("nfs4", "ro", "nas:/export"), { nfs: { ...exported.nfs, readOnly: true } }, ""],
  [local("none", "bind", "/srv/data"), { hostPath: { path: "/srv/data" } }, ""],
  [local("none", "rbind,rw", "./data"), { hostPath: { path: "/srv/shop/data" } }, ""],
  [
    local("cifs", "username=u,password=hunter2", "//nas/media"),
    claim,
    create("local --opt type=… --opt o=… --opt device=…"),
  ],
  [{ driver: "rclone" }, claim, create("rclone")],
  [
    local("tmpfs", "size=64m", "tmpfs"),
    { emptyDir: { medium: "Memory", sizeLimit: "64Mi" } },
    "each pod has a volume in memory of its own",
  ],
])("a volume of %j is what it mounts", (declared, source, note) => {
  const file = { ...(service({ volumes: ["v:/v"] }) as object), volumes: { v: declared } } as Json;
  const { manifests, notes, read } = convert(file);
  expect(read.findings).toEqual([]);
  expect(podOf(manifests)!.spec.volumes[0]).toEqual({ name: "v", ...source });
  expect(notes).toEqual(note ? [`volumes.v: ${note}`] : []);
});

test("an NFS volume with other options is a PersistentVolume with them, once for all services", () => {
  const file = {
    services: { a: { image: "x", volumes: ["v:/v"] }, b: { image: "x", volumes: ["v:/w:ro"] } },
    volumes: { v: local("nfs", "addr=10.0.0.2,nolock,soft,ro,nfsvers=3", ":/export") },
  };
  const { manifests, notes, read } = convert(file);
  expect(read.findings).toEqual([]);
  expect(notes.filter((line) => line.includes("o="))).toEqual([]);
  const kinds = manifests.map(({ kind }) => kind);
  expect(kinds).toEqual(["PersistentVolume", "PersistentVolumeClaim", "Pod", "Pod"]);
  expect((manifests[0] as { spec?: object }).spec).toMatchObject({
    nfs: { server: "10.0.0.2", path: "/export", readOnly: true },
    mountOptions: ["nolock", "soft", "nfsvers=3"],
  });
  expect(podOf(manifests, "a")!.spec.volumes).toEqual([{ name: "v", persistentVolumeClaim: { claimName: "shop-v" } }]);
});

test("services with a profile are left out, unless COMPOSE_PROFILES has it", () => {
  const file: Json = { services: { a: { image: "x" }, b: { image: "x", profiles: ["debug", "dev"] } } };
  const namesOf = (profiles: string) =>
    convert(file, { COMPOSE_PROFILES: profiles }).manifests.map((it) => it.metadata.name);
  expect([namesOf(""), namesOf("other, dev"), namesOf("*")]).toEqual([["a"], ["a", "b"], ["a", "b"]]);
  expect(convert(file).notes).toContain(
    "services.b.profiles: compose runs it only with the profile debug or dev: it is left out; --profile=debug takes it",
  );
});

test("named volumes start with the files of the image, as Compose has it, unless nocopy is set", () => {
  const long = (source: string, volume: object) => ({ type: "volume", source, target: `/${source}`, volume }) as Json;
  const volumes = ["a:/a:ro", "b:/b:nocopy", "/c", "./d:/d", long("e", {}), long("f", { nocopy: true })];
  const { manifests, read } = convert(service({ volumes, init: true }));
  expect(read.findings).toEqual([]);
  expect(podOf(manifests)!.metadata.annotations).toEqual({
    "kubelet-ts.io/fill-volumes": "a,c,e",
    "kubelet-ts.io/init": "true",
  });
});

test("an anonymous volume is a named one, and an emptyDir for each pod of a Deployment", () => {
  const one = convert(service({ volumes: ["/c"] }));
  expect(podOf(one.manifests)!.spec.volumes).toEqual([
    { name: "c", persistentVolumeClaim: { claimName: "shop_web-c" } },
  ]);
  expect(one.notes).toEqual([
    "services.web.volumes[0]: is an anonymous volume: it has the name shop_web-c, and stays until docker volume rm",
  ]);
  const two = convert(service({ volumes: ["/c"], scale: 2 }));
  expect(two.manifests[0]!.spec.template.spec.volumes).toEqual([{ name: "c", emptyDir: {} }]);
  expect(two.notes[0]).toContain("becomes an emptyDir");
});

test("the propagation of a bind mount is that of its volumeMount", () => {
  const bind = { type: "bind", source: "/m", target: "/m", bind: { propagation: "rslave" } };
  const { manifests } = convert(service({ privileged: true, volumes: ["/a:/a:ro,rshared", bind] }));
  expect(podOf(manifests)!.spec.containers[0].volumeMounts).toEqual([
    { name: "a", mountPath: "/a", readOnly: true, mountPropagation: "Bidirectional" },
    { name: "m", mountPath: "/m", mountPropagation: "HostToContainer" },
  ]);
});

describe("networks", () => {
  const networkOf = (networks: Json, declared: Json) => {
    const { manifests, notes } = convert({ ...(service({ networks }) as object), networks: declared } as Json);
    return { annotations: podOf(manifests)!.metadata.annotations, notes };
  };
  const ipam = { config: [{ subnet: "10.9.0.0/24", gateway: "10.9.0.1" }] };
  const dual = {
    driver: "default",
    config: [{ subnet: "10.9.0.0/24" }, { subnet: "fd00:9::/64", gateway: "fd00:9::1" }],
  };

  test.each<[string, Json, Json, object, string]>([
    [
      "a fixed address in a macvlan",
      { lan: { ipv4_address: "10.9.0.7" } },
      { lan: { driver: "macvlan", driver_opts: { parent: "eth0" }, ipam } },
      { "kubelet-ts.io/network": "shop_lan", "kubelet-ts.io/ip": "10.9.0.7" },
      "create the network of the pods first: docker network create --driver macvlan --subnet 10.9.0.0/24 --gateway 10.9.0.1 --opt parent=eth0 shop_lan",
    ],
    [
      "one of two families",
      ["mail"],
      { mail: { enable_ipv6: true, ipam: dual } },
      { "kubelet-ts.io/network": "shop_mail" },
      "create the network of the pods first: docker network create --subnet 10.9.0.0/24 --subnet fd00:9::/64 --gateway fd00:9::1 --ipv6 shop_mail",
    ],
    [
      "an internal one",
      ["back"],
      { back: { internal: true, name: "inside" } },
      { "kubelet-ts.io/network": "inside" },
      "create the network of the pods first: docker network create --internal inside",
    ],
    [
      "an external one",
      ["proxy"],
      { proxy: { external: true } },
      { "kubelet-ts.io/network": "proxy" },
      "the network of the pods is external: docker network create proxy, unless it exists",
    ],
  ])("%s that all services name is that of the pods", (_, networks, declared, annotations, note) => {
    expect(networkOf(networks, declared)).toEqual({ annotations, notes: [note] });
  });

  test("several, that of the fixed address first; older files have the name below external", () => {
    const declared = { front: null, back: { internal: true }, proxy: { external: { name: "edge" } } };
    const joined = { front: null, proxy: null, back: { ipv4_address: "10.9.0.7" } };
    expect(networkOf(joined, declared)).toEqual({
      annotations: { "kubelet-ts.io/network": "shop_back,shop_front,edge", "kubelet-ts.io/ip": "10.9.0.7" },
      notes: [
        "create the network of the pods first: docker network create shop_front",
        "the network of the pods is external: docker network create edge, unless it exists",
        "create the network of the pods first: docker network create --internal shop_back",
      ],
    });
  });
});

test("services of one pod find the one that has the network by its name", () => {
  const { manifests } = convert({
    services: { vpn: { image: "a" }, web: { image: "b", network_mode: "service:vpn" } },
  });
  expect(podOf(manifests, "vpn")!.spec.hostAliases).toEqual([{ ip: "127.0.0.1", hostnames: ["vpn"] }]);
});

describe("a scaled service", () => {
  const scaled = {
    web: { image: "nginx:1.22", restart: "always", ports: ["8080-8081:80", "53:53/udp"], deploy: { replicas: 2 } },
    db_main: { image: "a", links: ["web:www"], container_name: "pg" },
  };

  test("is a Deployment and a Service for its published ports", () => {
    const { manifests, notes, read } = convert({ services: scaled });
    expect(read.findings).toEqual([]);
    expect(notes).toEqual(["create the network of the pods first: docker network create shop"]);
    const labels = { "app.kubernetes.io/name": "web" };
    const [deployment, published] = manifests;
    expect(deployment).toMatchObject({
      kind: "Deployment",
      metadata: { name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: {
            labels,
            annotations: { "kubelet-ts.io/network": "shop", "kubelet-ts.io/network-aliases": "web,www" },
          },
          spec: { containers: [{ ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }] }] },
        },
      },
    });
    expect(published).toEqual({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web-published" },
      spec: {
        type: "LoadBalancer",
        selector: labels,
        ports: [
          { name: "p8080", port: 8080, targetPort: 80 },
          { name: "p8081", port: 8081, targetPort: 80 },
          { name: "p53-udp", port: 53, targetPort: 53, protocol: "UDP" },
        ],
      },
    });
    expect(podOf(manifests, "db-main")!.metadata.annotations).toEqual({
      "kubelet-ts.io/network": "shop",
      "kubelet-ts.io/network-aliases": "db_main,pg",
      "kubelet-ts.io/depends-on": "default/web=Running",
    });
  });

  test("with no or one container", () => {
    const countOf = (fields: { readonly [key: string]: Json }) => convert(service(fields)).manifests[0]?.spec.replicas;
    expect([{ scale: 0 }, { scale: 1 }, { scale: "3" }, { deploy: { mode: "global" } }].map(countOf)).toEqual([
      0,
      undefined,
      3,
      undefined,
    ]);
  });
});

describe("services that share a network", () => {
  const vpn = {
    vpn: { image: "a", ports: ["8080:80"], volumes: ["d:/d"] },
    torrent: { image: "b", network_mode: "service:vpn", depends_on: ["vpn"], volumes: ["d:/d"], pid: "service:vpn" },
    index: { image: "c", network_mode: "container:tor", environment: { API_KEY: "k" } },
    web: { image: "d", depends_on: { torrent: { condition: "service_healthy" } } },
  };
  const services = { ...vpn, torrent: { ...vpn.torrent, container_name: "tor" } };

  test("are containers of one pod", () => {
    const { manifests, notes, read } = convert({ services, volumes: { d: null } });
    expect(read.findings).toEqual([]);
    expect(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "Secret index-env",
      "Pod vpn",
      "Pod web",
    ]);
    expect(podOf(manifests, "vpn")!.spec).toMatchObject({
      shareProcessNamespace: true,
      containers: [{ name: "vpn" }, { name: "torrent" }, { name: "index" }],
      volumes: [{ name: "d" }],
    });
    expect(podOf(manifests, "web")!.metadata.annotations["kubelet-ts.io/depends-on"]).toBe("default/vpn=Ready");
    expect(notes).toContain(
      "services.torrent.depends_on.vpn: is not carried over: the containers of a pod start together",
    );
  });

  test("in a circle are refused", () => {
    const circle = { a: { network_mode: "service:b" }, b: { network_mode: "service:a" } };
    expect(() => convert({ services: circle })).toThrow("share networks in a circle");
  });
});

test("modes, owners and mount options of tmpfs are an annotation of the pod", () => {
  const { manifests, notes, read } = convert(
    service({
      tmpfs: ["/run:size=1m,mode=0755,uid=33,gid=33,noexec", "/tmp", "/cache:rw,exec"],
      volumes: [{ type: "tmpfs", target: "/b", tmpfs: { size: 4096, mode: 0o1777 } }],
    }),
  );
  expect([read.findings, notes]).toEqual([[], []]);
  const { metadata, spec } = podOf(manifests)!;
  expect(metadata.annotations).toEqual({
    "kubelet-ts.io/empty-dir-options": "b:mode=01777;run:mode=0755,uid=33,gid=33,noexec",
  });
  expect(spec.volumes).toContainEqual({ name: "run", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } });
});

test("a service whose health is waited for and that has no check of its own is checked by its image", () => {
  const waits = (name: string) => ({ [name]: { condition: "service_healthy" } });
  const { manifests, notes } = convert({
    services: {
      web: { image: "a", depends_on: { ...waits("db"), ...waits("own"), ...waits("off") } },
      db: { image: "b" },
      own: { image: "c", healthcheck: { test: "true" } },
      off: { image: "d", healthcheck: { disable: true } },
      timed: { image: "e", healthcheck: { interval: "5s" } },
    },
  });
  const checks = ["web", "db", "own", "off", "timed"].map(
    (name) => podOf(manifests, name)!.metadata.annotations?.["kubelet-ts.io/image-healthcheck"],
  );
  expect(checks).toEqual([undefined, "db=readiness", undefined, undefined, "timed=readiness"]);
  expect(notes.filter((note) => note.startsWith("services.timed"))).toEqual([
    "services.timed.healthcheck: has no test: the timing is that of the image, too",
  ]);
});

test("depends_on becomes the annotation depends-on", () => {
  const conditions = { db: "service_healthy", migrate: "service_completed_successfully", mq: "service_started" };
  const depends_on = Object.fromEntries(Object.entries(conditions).map(([name, condition]) => [name, { condition }]));
  const others = Object.fromEntries(["db", "migrate", "mq"].map((name) => [name, { image: "a" }]));
  const { manifests } = convert({ services: { web: { image: "b", depends_on }, ...others } });
  expect(podOf(manifests)!.metadata.annotations["kubelet-ts.io/depends-on"]).toBe(
    "default/db=Ready,default/migrate=Succeeded,default/mq=Running",
  );
  expect(podOf(manifests)!.spec.initContainers).toBeUndefined();
});

test.each(["env_file", "label_file"])("a %s that is not there is an error, unless it is not required", (key) => {
  const message = `${key}: "/srv/shop/none.env" is not there, cannot be read or has more than 1 MiB`;
  expect(() => convert(service({ [key]: "none.env" }))).toThrow(message);
  expect(convert(service({ [key]: [{ path: "none.env", required: false }] })).notes).toEqual([]);
});

test("labels and annotations are those of the pod", () => {
  const labels = { team: "x", note: "two words" };
  const { manifests } = convert(service({ labels, annotations: ["example.com/a=b"] }));
  expect(podOf(manifests)!.metadata).toEqual({
    name: "web",
    labels: { team: "x" },
    annotations: { "kubelet-ts.io/container-labels": "team=x\nnote=two words", "example.com/a": "b" },
  });
});

test("the Docker volumes that the pods use are named, because a new one is empty", () => {
  const volumes = ["db:/data", "./conf:/conf", "shared:/s"];
  const declared = { volumes: { db: null, shared: { external: true } } };
  const file = { ...(service({ volumes }) as object), ...declared } as Json;
  expect(convert(file).notes.filter((note) => note.includes("Docker volumes"))).toEqual([
    "the pods use the Docker volumes shop_db, shared: data that docker compose left there stays; one that is missing is made",
  ]);
  expect(convert(service({ volumes: ["./conf:/conf"] })).notes).toEqual([]);
});

describe("interpolation", () => {
  test.each([
    ["$TAG", "1"],
    ["${TAG}-x", "1-x"],
    ["${NONE:-d}", "d"],
    ["${NONE-${TAG}}", "1"],
    ["${EMPTY:-d}", "d"],
    ["${EMPTY-d}", ""],
    ["${TAG:+yes}", "yes"],
    ["$$TAG", "$TAG"],
  ])("%s is %s", (text, want) => {
    const { manifests } = convert(service({ environment: { X: text } }), { TAG: "1", EMPTY: "" });
    expect(podOf(manifests)!.spec.containers[0].env).toEqual([{ name: "X", value: want }]);
  });

  test("a required variable without a value is an error", () => {
    expect(() => convert(service({ image: "a:${TAG:?set it}" }))).toThrow("TAG: set it");
    expect(() => convert(service({ image: "a:${TAG" }))).toThrow("begins no variable");
    expect(() => convert(service({ environment: [{ A: "b" }] }))).toThrow("write NAME=value");
    expect(() => convert(service({ image: { name: "a" } }))).toThrow("write image: NAME");
    expect(() => convert(service({ depends_on: "db" }))).toThrow("depends_on is a text: write a list or a map");
  });

  test("variables that hold each other again and again are an error", () => {
    const lines = Array.from("BCDEFGH", (name, i) => `${name}=${`$${"ABCDEFG"[i]}`.repeat(20)}`);
    expect(() => parseEnvFile(["A=x", ...lines].join("\n"))).toThrow("more than 4194304 characters");
  });
});

test.each<{ file: Json }>([
  { file: null },
  { file: [] },
  { file: { kind: "Pod" } },
  { file: { services: [] } },
  { file: { services: { web: "x" } } },
])("$file is not a Compose file", ({ file }) => expect(() => convert(file)).toThrow("this is not a Compose file"));

test("more services than a node runs, and more values than they need, are an error", () => {
  expect(() => parseCompose(`a: [${"1,".repeat(60_000)}]`)).toThrow("more than 50000 values");
  const services = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`s${index}`, { image: "a" }]));
  expect(() => convert({ services })).toThrow("more than 500 services");
});

describe("the text", () => {
  test.each([
    ["a: yes", { a: "yes" }],
    ["off: N\n1.10: a\nb: 017", { off: "N", "1.10": "a", b: 15 }],
    ["a: [y, on, Off, true, ~]", { a: ["y", "on", "Off", true, null] }],
    ["a: 9007199254740993", { a: "9007199254740993" }],
    ["a: 22:22", { a: "22:22" }],
    ["a: [0440, 0o440, 0x10]", { a: [288, 288, 16] }],
    ["x: &x {a: 1}\nb: {<<: *x, c: 2}", { x: { a: 1 }, b: { a: 1, c: 2 } }],
  ])("%j is YAML 1.2", (text, want) => expect(parseCompose(text)).toEqual(want as never));

  test.each([
    ["services.web", 3],
    ["services.web.ports", 4],
    ["services.web.ports[1]", 6],
    ["services.web.ports[1].mode", 7],
    ["services.a.b.init", 9],
    ["services.web.tty", 3],
    ["services.webs", 2],
    ["no.yaml", undefined],
  ])("the line of %s is %p", (path, line) => {
    const text =
      "# c\nservices:\n  web:\n    ports:\n      - 80\n      - target: 1\n        mode: x\n  a.b: {image: c,\n    init: true}\n";
    expect(originOf(parseCompose(text), path)?.at).toBe(line === undefined ? line : `:${line}`);
  });

  test.each([
    ["a: [1", "1:6:"],
    ["a: 1\na: 2", "2:1:"],
    [`${"[".repeat(200)}${"]".repeat(200)}`, "nested too deeply"],
    ["[".repeat(50_000), "levels of nesting"],
    ["? ".repeat(3000), "1:6000:"],
    [Array.from({ length: 600 }, (_, level) => `${" ".repeat(level)}a:`).join("\n"), "nested too deeply"],
    [
      Array.from(
        "abcdefghij",
        (name, i) => `${name}: &${name} [${`*${"zabcdefghi"[i]},`.repeat(i === 0 ? 0 : 9)}1]`,
      ).join("\n"),
      "alias",
    ],
  ])("%p is refused", (text, want) => {
    const read = () => parseCompose(text);
    expect(read).toThrow(ComposeError);
    expect(read).toThrow(
      expect.objectContaining(want.endsWith(":") ? { position: want } : { message: expect.stringContaining(want) }),
    );
  });

  test.each([
    ['PW="p w" # note', "p w"],
    ["PW='p $A' # note", "p $A"],
    ['PW="a\\nb\\"c\\$A"', 'a\nb"c$A'],
    ["PW=p#w # note", "p#w"],
    ["PW=${A}-$A-${NONE:-d}", "1-1-d"],
    ['PW="-----BEGIN\nkey\n-----END"', "-----BEGIN\nkey\n-----END"],
    ["export PW = x ", "x"],
    ["PW: x", "x"],
    ["PW=", ""],
    ['PW="open', '"open'],
  ])("the env file %j", (line, want) => expect(parseEnvFile(`A=1\n${line}\nB=2`).get("PW")).toBe(want));

  test("a variable of the process wins in references of an env file", () => {
    expect(parseEnvFile("A=1\nB=$A", new Map([["A", "2"]])).get("B")).toBe("2");
  });
});

test.each([
  ["1m30s", 90],
  ["500ms", 1],
  ["0s", 1],
  ["0", undefined],
  ["-5s", undefined],
  ["5", undefined],
])("the duration %s has %p seconds", (text, want) => expect(toSeconds(text)).toBe(want));
