/**
 * `npm run test:vm -- trixie|sid [--containerd-image-store] [test…]`: integration tests on a machine of another kind than this one: a Debian of that
 * release with its own kernel, systemd, cgroup v2 and Docker engine. The kernel is User Mode Linux, a program like any
 * other: no virtualisation is needed, and no network. The last line is `N passed, N failed`.
 *
 * Needs root on Debian or Ubuntu, with debootstrap and e2fsprogs, and 4 GB of memory. The machine is built once, below
 * node_modules/.cache/vm, and never changed by a run.
 */
import { spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAptMachine, unpackPackages } from "./apt.mjs";
import { findProgram, runCommand } from "./run-command.mjs";
import { CannotGoOn, heading, runMain, sayDuration, step } from "./say.mjs";
import { buildBinary, ensurePackages, ROOT } from "./workspace.mjs";

const SUITES = ["trixie", "sid"];

const STORE_FLAG = "--containerd-image-store";

const MIRROR = "http://deb.debian.org/debian";

const PACKAGES = [
  "apparmor busybox-static ca-certificates dbus docker-cli docker.io e2fsprogs iproute2 iptables kmod",
  "nfs-kernel-server nginx nodejs openssl procps prometheus rsync systemd systemd-sysv udev vim-tiny",
].flatMap((line) => line.split(" "));

/** Services of the packages that are not needed. */
const MASKED = ["nginx", "prometheus", "prometheus-node-exporter", "e2scrub_reap", "systemd-networkd-wait-online"];

/** Only the program is of use, and sid's package cannot be set up in a folder. */
const UNPACK_REGISTRY =
  "cd /tmp && apt-get -q download docker-registry && dpkg-deb -x docker-registry_*.deb / && rm *.deb";

/** Those in which the engine, the kernel or systemd decides; the machine has one slow CPU. */
const TESTS = [
  "docker-client",
  "images",
  "pod-cgroups",
  "resize",
  "volumes",
  "security",
  "stats",
  "lifecycle",
  "failed-mounts",
  "examples",
];

/** How many times longer tests wait there. */
const SLOWNESS = 6;

const RUN_LIMIT_MS = 60 * 60_000;

const CACHE = join(ROOT, "node_modules", ".cache", "vm");

async function must(what, command, args, options = {}) {
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code !== 0) throw new CannotGoOn(`${what} failed:`, `${stdout}\n${stderr}`.trim().split("\n").slice(-8));
}

function checkMachine() {
  if (process.getuid?.() !== 0) throw new CannotGoOn("Only root can build a machine.", ["Run this again with sudo."]);
  if (process.arch !== "x64") throw new CannotGoOn(`User Mode Linux is there for x86-64, this is ${process.arch}.`);
  if (!isAptMachine()) throw new CannotGoOn("This needs Debian or Ubuntu.");
  const missing = { debootstrap: "debootstrap", mke2fs: "e2fsprogs" };
  for (const [program, name] of Object.entries(missing))
    if (!findProgram(program)) throw new CannotGoOn(`${program} is missing.`, [`apt-get install ${name}`]);
}

/** The kernel: a program and its modules. @returns {Promise<string>} the folder it lies in */
async function ensureKernel() {
  const folder = join(CACHE, "kernel");
  if (!existsSync(join(folder, "usr/bin/linux.uml"))) {
    step("kernel", "unpacking user-mode-linux");
    mkdirSync(folder, { recursive: true });
    await unpackPackages(["user-mode-linux"], folder);
  }
  return folder;
}

/** Changes that make a tree of packages a machine that boots, runs one job and switches itself off. */
function configure(root, kernel) {
  cpSync(join(kernel, "usr/lib/uml/modules"), join(root, "usr/lib/modules"), { recursive: true });
  for (const name of ["work", "report"]) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "etc/hostname"), "vm\n");
  writeFileSync(join(root, "etc/resolv.conf"), "nameserver 192.0.2.53\n");
  writeFileSync(join(root, "etc/fstab"), "/dev/ubda / ext4 defaults 0 0\n/dev/ubdb /work ext4 defaults 0 0\n");
  const units = join(root, "etc/systemd/system");
  for (const name of MASKED) link("/dev/null", join(units, `${name}.service`));
  writeFileSync(
    join(units, "job.service"),
    `[Unit]
After=multi-user.target docker.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec sh /work/vm-job.sh >/dev/console 2>&1'
ExecStopPost=/usr/bin/systemctl --no-block poweroff
`,
  );
  // A timer starts it, because multi-user.target would wait for what it wants itself.
  writeFileSync(join(units, "job.timer"), "[Timer]\nOnBootSec=1\n");
  mkdirSync(join(units, "timers.target.wants"), { recursive: true });
  link("/etc/systemd/system/job.timer", join(units, "timers.target.wants/job.timer"));
}

function link(target, path) {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

/** The disk of the machine, as it is before its first boot. @returns {Promise<string>} */
async function ensureDisk(suite, kernel) {
  const disk = join(CACHE, `${suite}.img`);
  if (existsSync(disk)) {
    step("machine", `${suite}: there already (${disk}; delete it to have it built from today's packages)`);
    return disk;
  }
  const started = performance.now();
  step("machine", `${suite}: debootstrap from ${MIRROR}`);
  const root = mkdtempSync(join(tmpdir(), "kubelet-ts-vm-"));
  try {
    await must("debootstrap", "debootstrap", ["--variant=minbase", suite, root, MIRROR]);
    writeFileSync(join(root, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n");
    chmodSync(join(root, "usr/sbin/policy-rc.d"), 0o755);
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
    const install = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "install", "--no-install-recommends", ...PACKAGES];
    await must("Installing packages", "chroot", [root, ...install], { env });
    await must("Unpacking docker-registry", "chroot", [root, "sh", "-c", UNPACK_REGISTRY], { env });
    // The kernel of this machine has no nftables for IPv4.
    for (const name of ["iptables", "ip6tables"])
      await must(name, "chroot", [root, "update-alternatives", "--set", name, `/usr/sbin/${name}-legacy`], { env });
    await runCommand("chroot", [root, "apt-get", "clean"]);
    configure(root, kernel);
    await must("mke2fs", "mke2fs", ["-q", "-F", "-t", "ext4", "-d", root, `${disk}.new`, "12G"]);
    renameSync(`${disk}.new`, disk);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  step("machine", `${suite}: built in ${sayDuration(performance.now() - started)}`);
  return disk;
}

/** Setting that keeps images in containerd, as on engines since 29 unless they were upgraded. */
const CONTAINERD_IMAGE_STORE = `mkdir -p /etc/docker
echo '{"features":{"containerd-snapshotter":true}}' > /etc/docker/daemon.json
systemctl restart docker`;

const jobOf = ({ tests, containerdImageStore }) => `set -u
mount -t hostfs none /report -o "$(sed -n 's/.*report=\\([^ ]*\\).*/\\1/p' /proc/cmdline)"
export HOME=/root PATH=/work/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/var/tmp CI=1 NO_COLOR=1
export KUBELET_TS_TEST_SLOWNESS=${SLOWNESS}
${containerdImageStore ? CONTAINERD_IMAGE_STORE : ""}
cd /work
echo "kernel $(uname -r), $(docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, {{.CgroupDriver}} driver, {{.Driver}}, {{.SecurityOptions}}'), API $(docker version --format '{{.Server.APIVersion}}')" | tee /report/machine
node scripts/images.mjs --test
bun test --reporter=junit --reporter-outfile=/var/tmp/report.xml ${tests.map((name) => `test/integration/${name}.test.ts`).join(" ")}
cp /var/tmp/report.xml /report/report.xml
`;

/** A disk with the project as it lies here: sources, packages, the binary and the job. */
async function makeProjectDisk(folder, job) {
  const tree = join(folder, "project");
  mkdirSync(tree);
  const files = await runCommand("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
  const list = join(folder, "files");
  const wanted = files.stdout.split("\n").filter((path) => path !== "" && existsSync(join(ROOT, path)));
  writeFileSync(list, [...wanted, "node_modules", "dist/kubelet-ts", ""].join("\n"));
  await must("Copying the project", "sh", [
    "-c",
    `tar -C "$1" --exclude=node_modules/.cache -cf - -T "$2" | tar -C "$3" -xf -`,
    "sh",
    ROOT,
    list,
    tree,
  ]);
  writeFileSync(join(tree, "vm-job.sh"), jobOf(job));
  const disk = join(folder, "project.img");
  await must("mke2fs", "mke2fs", ["-q", "-F", "-t", "ext4", "-d", tree, disk, "3G"]);
  return disk;
}

/** Boots the machine and waits until it has switched itself off; what it says goes to our output. */
async function runMachine(folder, { kernel, disk, project }) {
  const report = join(folder, "report");
  mkdirSync(report);
  // Its memory is a file: better one that is in memory itself.
  const { bavail, bsize } = existsSync("/dev/shm") ? statfsSync("/dev/shm") : { bavail: 0, bsize: 0 };
  const args = [
    "mem=3G",
    `uml_dir=${folder}/`,
    `ubd0=${join(folder, "changes")},${disk}`,
    `ubd1=${project}`,
    "root=/dev/ubda rw quiet systemd.show_status=false apparmor=1 security=apparmor con0=null,fd:1 con=null ssl=null",
    `report=${report}`,
  ].flatMap((arg) => arg.split(" "));
  const log = join(folder, "console");
  const child = spawn(join(kernel, "usr/bin/linux.uml"), args, {
    cwd: folder,
    // Every process of the machine is one of this group here.
    detached: true,
    env: { ...process.env, ...(bavail * bsize > 3.5e9 && { TMPDIR: "/dev/shm" }) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = () => {
    try {
      process.kill(-(child.pid ?? 0), "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const timer = setTimeout(end, RUN_LIMIT_MS);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, end);
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      process.stdout.write(chunk);
      appendFileSync(log, chunk);
    });
  await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  clearTimeout(timer);
  end();
  return report;
}

function count(report) {
  const file = join(report, "report.xml");
  const [head] = (existsSync(file) && /<testsuites\b[^>]*>/.exec(readFileSync(file, "utf8"))) || [""];
  const read = (name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
  const passed = read("tests") - read("skipped") - read("failures");
  return { passed, failed: Math.max(read("failures"), passed > 0 ? 0 : 1), skipped: read("skipped") };
}

async function main() {
  const [suite = "", ...rest] = process.argv.slice(2);
  const containerdImageStore = rest.includes(STORE_FLAG);
  const named = rest.filter((arg) => arg !== STORE_FLAG);
  if (!SUITES.includes(suite)) {
    throw new CannotGoOn(suite === "" ? "Which machine?" : `There is no machine "${suite}".`, [
      `npm run test:vm -- ${SUITES.join("|")} [${STORE_FLAG}] [test…]`,
    ]);
  }
  const known = readdirSync(join(ROOT, "test/integration")).map((file) => file.replace(/\.test\.ts$/, ""));
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new CannotGoOn(`There is no test "${unknown}".`, [`Known: ${known.join(", ")}`]);
  checkMachine();
  heading("Set-up");
  await ensurePackages();
  await buildBinary();
  mkdirSync(CACHE, { recursive: true });
  const kernel = await ensureKernel();
  const disk = await ensureDisk(suite, kernel);
  const folder = mkdtempSync(join(tmpdir(), "kubelet-ts-vm-"));
  try {
    const project = await makeProjectDisk(folder, {
      tests: named.length > 0 ? named : TESTS,
      containerdImageStore,
    });
    heading(`Integration tests on Debian ${suite}`);
    const report = await runMachine(folder, { kernel, disk, project });
    const { passed, failed, skipped } = count(report);
    const machine = join(report, "machine");
    heading("Summary");
    step("machine", existsSync(machine) ? readFileSync(machine, "utf8").trim() : "did not come up");
    console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await runMain(main);
