/**
 * The images that the examples and the tests use, made from Debian's packages where no registry can be reached, without
 * a Dockerfile or builder: a file tree and a configuration.
 */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { libraryPackagesOf, unpackPackages } from "./apt.mjs";
import { runCommand } from "./run-command.mjs";
import { CannotContinue } from "./say.mjs";
import { ROOT } from "./workspace.mjs";

/**
 * @typedef {import("./tar.mjs").TarEntry} TarEntry
 * @typedef {{ entries: TarEntry[], config: Record<string, unknown> }} ImageContent `config`: as in an image's own JSON
 * @typedef {{ name: string, pullable: boolean, make: () => Promise<ImageContent> }} Recipe
 *   `pullable`: a registry has an equivalent image of that name; images of tests must be exactly these.
 */

const USUAL_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where programs that this machine lacks stay unpacked: images of tests are compared with what they would be at each run. */
const UNPACKED = join(ROOT, "node_modules", ".cache", "image-programs");

/** @param {string} program @param {readonly string[]} packages @param {(root: string) => Promise<T>} use @template T */
async function withProgram(program, packages, use) {
  if (existsSync(program)) return await use("/");
  const root = join(UNPACKED, packages[0]);
  if (!existsSync(root)) {
    await mkdir(UNPACKED, { recursive: true });
    const scratch = await mkdtemp(`${root}-`);
    try {
      await unpackPackages(packages, scratch);
      const libraries = (await Promise.all(packages.map(libraryPackagesOf))).flat();
      if (libraries.length > 0) await unpackPackages(libraries, scratch);
      // Another run may have been faster.
      await rename(scratch, root).catch((error) => {
        if (!existsSync(root)) throw error;
      });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }
  return await use(root);
}

let busyboxOnce;
/** A static busybox with its applets, and the folders and users that programs expect. @returns {Promise<TarEntry[]>} */
function busyboxTree() {
  busyboxOnce ??= withProgram("/bin/busybox", ["busybox-static"], async (root) => {
    const program = join(root, "bin/busybox");
    const { code, stdout } = await runCommand(program, ["--list"]);
    if (code !== 0)
      throw new CannotContinue(`${program} does not run.`, ["Install busybox-static, then run this again."]);
    const data = readFileSync(program);
    // ELF: a program header of type 3 (PT_INTERP) names a loader, which the image does not have.
    if (data.includes("/lib64/ld-linux") || data.includes("/lib/ld-")) {
      throw new CannotContinue("The busybox on this machine is not static.", ["apt-get install busybox-static"]);
    }
    // Among its applets busybox lists itself: a link of that name would replace the program.
    const applets = stdout.split("\n").filter((name) => name !== "" && name !== "busybox");
    return [
      { path: "bin", directory: true },
      { path: "bin/busybox", mode: 0o755, data },
      ...applets.sort().map((name) => ({ path: `bin/${name}`, symlink: "busybox", mode: 0o777 })),
      ...["dev", "etc", "home", "proc", "root", "run", "sys", "usr", "var"].map((path) => ({ path, directory: true })),
      { path: "tmp", directory: true, mode: 0o1777 },
      { path: "var/log", directory: true },
    ];
  });
  return busyboxOnce;
}

const usersOf = (...lines) => ({
  path: "etc/passwd",
  data: ["root:x:0:0:root:/root:/bin/sh", ...lines, "nobody:x:65534:65534:nobody:/home:/bin/false", ""].join("\n"),
});
const groupsOf = (...lines) => ({
  path: "etc/group",
  data: ["root:x:0:", ...lines, "nogroup:x:65534:", ""].join("\n"),
});

const NGINX_CONF = `user nginx;
worker_processes 1;
error_log /var/log/nginx/error.log notice;
pid /run/nginx.pid;

events {
  worker_connections 1024;
}

http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  log_format main '$remote_addr - $remote_user [$time_local] "$request" '
                  '$status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"';
  access_log /var/log/nginx/access.log main;
  sendfile on;
  keepalive_timeout 65;
  include /etc/nginx/conf.d/*.conf;
}
`;

const NGINX_SITE = `server {
  listen 80;
  server_name localhost;
  location / {
    root /usr/share/nginx/html;
    index index.html index.htm;
  }
}
`;

const NGINX_PAGE = `<!DOCTYPE html>
<html>
<head><title>Welcome to nginx!</title></head>
<body>
<h1>Welcome to nginx!</h1>
<p>If you see this page, the nginx web server is successfully running.</p>
</body>
</html>
`;

/** The libraries a program loads, as entries under the paths that its loader searches. @returns {Promise<TarEntry[]>} */
async function librariesOf(program, root) {
  const folders = ["lib", "usr/lib"].flatMap((lib) => [
    join(root, lib),
    join(root, lib, process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu"),
  ]);
  const { code, stdout, stderr } = await runCommand("ldd", [program], {
    env: { ...process.env, LD_LIBRARY_PATH: folders.join(":") },
  });
  const absent = /^\s*(\S+) => not found/m.exec(stdout);
  if (code !== 0 || absent) throw new Error(`ldd ${program}: ${absent ? `${absent[1]} not found` : stderr.trim()}`);
  // `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)`, and the loader alone: `/lib64/ld-linux-x86-64.so.2 (0x…)`.
  const paths = [...stdout.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map((match) => match[1]);
  return paths.map((path) => ({
    path: /\/ld-[^/]+$/.test(path) ? path.slice(1) : `usr/lib/${basename(path)}`,
    mode: 0o755,
    data: readFileSync(realpathSync(path)),
  }));
}

async function makeNginx() {
  return await withProgram("/usr/sbin/nginx", ["nginx", "nginx-common"], async (root) => {
    const program = join(root, "usr/sbin/nginx");
    const libraries = await librariesOf(program, root);
    const files = [
      ...(await busyboxTree()),
      usersOf("nginx:x:101:101:nginx user:/nonexistent:/bin/false"),
      groupsOf("nginx:x:101:"),
      ...libraries,
      { path: "usr/sbin/nginx", mode: 0o755, data: readFileSync(program) },
      { path: "etc/nginx/nginx.conf", data: NGINX_CONF },
      { path: "etc/nginx/mime.types", data: readFileSync(join(root, "etc/nginx/mime.types")) },
      { path: "etc/nginx/conf.d/default.conf", data: NGINX_SITE },
      { path: "usr/share/nginx/html/index.html", data: NGINX_PAGE },
      { path: "var/lib/nginx", directory: true },
      { path: "var/log/nginx", directory: true },
      // As in the image of the nginx project: `docker logs` shows what is not shadowed by a volume.
      { path: "var/log/nginx/access.log", symlink: "/dev/stdout", mode: 0o777 },
      { path: "var/log/nginx/error.log", symlink: "/dev/stderr", mode: 0o777 },
    ];
    return {
      entries: withParents(files),
      config: {
        Env: [USUAL_PATH],
        Cmd: ["nginx", "-g", "daemon off;"],
        ExposedPorts: { "80/tcp": {} },
        StopSignal: "SIGQUIT",
      },
    };
  });
}

async function makeDnsmasq() {
  return await withProgram("/usr/sbin/dnsmasq", ["dnsmasq-base"], async (root) => {
    const program = join(root, "usr/sbin/dnsmasq");
    const files = [
      ...(await busyboxTree()),
      usersOf(),
      groupsOf(),
      ...(await librariesOf(program, root)),
      { path: "usr/sbin/dnsmasq", mode: 0o755, data: readFileSync(program) },
    ];
    return { entries: withParents(files), config: { Env: [USUAL_PATH], Cmd: ["dnsmasq", "-k"] } };
  });
}

async function makeRedis() {
  return await withProgram("/usr/bin/redis-check-rdb", ["redis-tools"], async (root) => {
    // The server is the program that checks its files, by another name.
    const programs = { "redis-server": "redis-check-rdb", "redis-cli": "redis-cli" };
    const paths = Object.entries(programs).map(([name, file]) => [name, join(root, "usr/bin", file)]);
    const libraries = (await Promise.all(paths.map(([, path]) => librariesOf(path, root)))).flat();
    const files = [
      ...(await busyboxTree()),
      usersOf("redis:x:999:999::/home/redis:/bin/sh"),
      groupsOf("redis:x:999:"),
      ...new Map(libraries.map((entry) => [entry.path, entry])).values(),
      ...paths.map(([name, path]) => ({ path: `usr/bin/${name}`, mode: 0o755, data: readFileSync(path) })),
      { path: "data", directory: true },
    ];
    return {
      entries: withParents(files),
      config: { Env: [USUAL_PATH], Cmd: ["redis-server"], WorkingDir: "/data", ExposedPorts: { "6379/tcp": {} } },
    };
  });
}

/** Adds the folders that entries lie in and that have no entry of their own yet. */
function withParents(entries) {
  const known = new Set(entries.filter((entry) => entry.directory).map((entry) => entry.path));
  const folders = [];
  for (const { path } of entries) {
    for (let folder = dirname(path); folder !== "." && !known.has(folder); folder = dirname(folder)) {
      known.add(folder);
      folders.push({ path: folder, directory: true });
    }
  }
  return [...folders.sort((a, b) => a.path.localeCompare(b.path)), ...entries];
}

const fromBusybox =
  (config, more = []) =>
  async () => ({
    entries: [...(await busyboxTree()), ...(more.length > 0 ? more : [usersOf(), groupsOf()])],
    config,
  });

const TEST_CONFIG = { Env: ["PATH=/bin"], Cmd: ["sh"] };

/** @type {readonly Recipe[]} */
export const EXAMPLE_IMAGES = [
  { name: "nginx:1.22", pullable: true, make: makeNginx },
  { name: "redis:7.0", pullable: true, make: makeRedis },
  { name: "busybox:1.35", pullable: true, make: fromBusybox({ Env: [USUAL_PATH], Cmd: ["sh"] }) },
];

/** `oracle/*`: the images with which the real kubelet's behavior was recorded. @type {readonly Recipe[]} */
export const TEST_IMAGES = [
  { name: "dnsmasq:test", pullable: false, make: makeDnsmasq },
  { name: "busybox:test", pullable: false, make: fromBusybox(TEST_CONFIG) },
  {
    name: "oracle/ep:1",
    pullable: false,
    make: fromBusybox({ ...TEST_CONFIG, Entrypoint: ["/bin/echo", "ep"], Cmd: ["cmd0", "cmd1"] }),
  },
  { name: "oracle/nocmd:1", pullable: false, make: fromBusybox({ Env: ["PATH=/bin"] }) },
  {
    name: "oracle/named:1",
    pullable: false,
    make: fromBusybox({ ...TEST_CONFIG, User: "app", Cmd: ["sleep", "3600"] }, [
      usersOf("app:x:1234:1235::/:/bin/sh"),
      groupsOf("extra:x:2000:app"),
    ]),
  },
  {
    name: "oracle/full:1",
    pullable: false,
    make: fromBusybox({
      Env: ["PATH=/bin", "IMGVAR=from-image", "IMGVAR2=keep"],
      User: "1000:1001",
      WorkingDir: "/img/work",
      Volumes: { "/imgvol": {} },
      ExposedPorts: { "8080/tcp": {}, "9090/udp": {} },
      StopSignal: "SIGUSR1",
      Labels: { imglabel: "x" },
      // Interval: nanoseconds.
      Healthcheck: { Test: ["CMD-SHELL", "true"], Interval: 1_000_000_000 },
      Entrypoint: ["/bin/sh", "-c", "echo zero=$0 args=$@; id; pwd; env | sort; while :; do sleep 1; done"],
      Cmd: ["cmd0", "cmd1"],
    }),
  },
];
