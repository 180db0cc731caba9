/**
 * `npm run test:vm -- trixie|sid [--containerd-image-store] [test…]`: tests on a machine of another kind than this one: a
 * Debian of that release with its own kernel, systemd, cgroup v2 and Docker engine. A test is a file of test/integration,
 * or a folder of test/vm, whose files run one per boot of the same machine. The kernel is User Mode Linux, an ordinary
 * program: neither virtualization nor a network is needed. The last line is `N passed, N failed`.
 *
 * Needs root on Debian or Ubuntu, with debootstrap and e2fsprogs, and 4 GB of memory. The machine is built once, below
 * node_modules/.cache/vm, and a run never changes it.
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
import { isAptMachine } from "./apt.mjs";
import { findProgram, runCommand } from "./run-command.mjs";
import { CannotContinue, heading, runMain, sayDuration, step } from "./say.mjs";
import { buildBinary, ensurePackages, ROOT } from "./workspace.mjs";

const SUITES = ["trixie", "sid"];

const STORE_FLAG = "--containerd-image-store";

const MIRROR = "http://deb.debian.org/debian";

const PACKAGES = [
  "apparmor busybox-static ca-certificates dbus dbus-user-session docker-cli docker.io e2fsprogs fuse-overlayfs iproute2",
  "iptables kmod libpam-systemd nfs-kernel-server nginx nodejs openssl procps prometheus rootlesskit rsync",
  "slirp4netns systemd systemd-sysv systemd-timesyncd udev uidmap vim-tiny",
].flatMap((line) => line.split(" "));

/** Services of the packages that are not needed. */
const MASKED = ["nginx", "prometheus", "prometheus-node-exporter", "e2scrub_reap", "systemd-networkd-wait-online"];

/** Only the program is needed, and sid's package cannot be configured in a folder. */
const UNPACK_REGISTRY =
  "cd /tmp && apt-get -q download docker-registry && dpkg-deb -x docker-registry_*.deb / && rm *.deb";

/** Tests whose result depends on the engine, the kernel or systemd. */
const TESTS = [
  "docker-client",
  "images",
  "resize",
  "volumes",
  "security",
  "serial/stats",
  "oracle-deletion",
  "examples",
  "install",
  "trials",
];

/** How many times longer tests wait there. */
const SLOWNESS = 6;

const RUN_LIMIT_MS = 120 * 60_000;

const CACHE = join(ROOT, "node_modules", ".cache", "vm");

async function must(what, command, args, options = {}) {
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code !== 0) throw new CannotContinue(`${what} failed:`, `${stdout}\n${stderr}`.trim().split("\n").slice(-8));
}

function checkMachine() {
  if (process.getuid?.() !== 0)
    throw new CannotContinue("Only root can build a machine.", ["Run this again with sudo."]);
  if (process.arch !== "x64")
    throw new CannotContinue(`User Mode Linux exists for x86-64 only, this is ${process.arch}.`);
  if (!isAptMachine()) throw new CannotContinue("This needs Debian or Ubuntu.");
  const missing = { debootstrap: "debootstrap", mke2fs: "e2fsprogs" };
  for (const [program, name] of Object.entries(missing))
    if (!findProgram(program)) throw new CannotContinue(`${program} is missing.`, [`apt-get install ${name}`]);
}

/**
 * The kernel: a program, its C library and its modules, as sid has them: kernels before 6.13 cannot run on processors with
 * a large register state (AMX). It runs with its folder as root directory.
 * @returns {Promise<string>} the folder
 */
async function ensureKernel() {
  const folder = join(CACHE, "kernel-sid");
  if (existsSync(folder)) return folder;
  step("kernel", "unpacking user-mode-linux");
  const work = mkdtempSync(join(CACHE, "kernel-"));
  try {
    const lists = join(work, "lists");
    const tree = join(work, "tree");
    mkdirSync(join(lists, "partial"), { recursive: true });
    for (const name of ["usr/lib64", "proc", "dev"]) mkdirSync(join(tree, name), { recursive: true });
    for (const name of ["lib", "lib64"]) symlinkSync(`usr/${name}`, join(tree, name));
    const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    writeFileSync(join(work, "sources.list"), `deb [signed-by=${keyring}] ${MIRROR} sid main\n`);
    const options = {
      "Dir::Etc::sourcelist": join(work, "sources.list"),
      "Dir::Etc::sourceparts": "-",
      "Dir::State::lists": lists,
      "Dir::Cache::pkgcache": "",
      "Dir::Cache::srcpkgcache": "",
      "APT::Sandbox::User": "root",
    };
    const flags = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    await must("Reading sid's package list", "apt-get", ["-q", ...flags, "update"]);
    await must(
      "Downloading the kernel",
      "apt-get",
      ["-q", ...flags, "download", "user-mode-linux", "libc6", "libgcc-s1"],
      {
        cwd: work,
      },
    );
    for (const file of readdirSync(work).filter((name) => name.endsWith(".deb")))
      await must(`Unpacking ${file}`, "dpkg-deb", ["-x", join(work, file), tree]);
    renameSync(tree, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}

/** Configures a tree of packages as a machine that boots, runs one job and powers off. */
function configure(root, kernel) {
  cpSync(join(kernel, "usr/lib/uml/modules"), join(root, "usr/lib/modules"), { recursive: true });
  for (const name of ["work", "report"]) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "etc/hostname"), "vm\n");
  mkdirSync(join(root, "etc/docker"), { recursive: true });
  writeFileSync(join(root, "etc/docker/daemon.json"), JSON.stringify(ENGINE_SETTINGS));
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
  // Started by a timer, because a job wanted by multi-user.target would delay that target.
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
    step("machine", `${suite}: already built (${disk}; delete it to have it built from today's packages)`);
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

/** The kernel has no address translation: published ports go through Docker's proxy. */
const ENGINE_SETTINGS = { iptables: false, ip6tables: false };

/** Setting that keeps images in containerd, as on engines since 29 unless they were upgraded. */
const CONTAINERD_IMAGE_STORE = `echo '${JSON.stringify({ ...ENGINE_SETTINGS, features: { "containerd-snapshotter": true } })}' > /etc/docker/daemon.json
systemctl restart docker`;

const jobOf = ({ tests, containerdImageStore }) => `set -u
mount -t hostfs none /report -o "hostfs=$(sed -n 's/.*report=\\([^ ]*\\).*/\\1/p' /proc/cmdline)"
export HOME=/root PATH=/work/node_modules/.bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/var/tmp CI=1 NO_COLOR=1
export KUBELET_TS_TEST_SLOWNESS=${SLOWNESS} KUBELET_TS_TEST_VM=1
boot=$(sed -n 's/.*kubelet_ts_boot=\\([0-9]*\\).*/\\1/p' /proc/cmdline)
if [ "$boot" = 1 ]; then
${containerdImageStore ? CONTAINERD_IMAGE_STORE : ":"}
fi
cd /work
docker version >/dev/null 2>&1 || { systemctl start docker; journalctl --no-pager -u docker -u containerd -n 40; }
echo "kernel $(uname -r), $(docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, {{.CgroupDriver}} driver, {{.Driver}}, {{.SecurityOptions}}'), API $(docker version --format '{{.Server.APIVersion}}')" | tee /report/machine
[ "$boot" = 1 ] && node scripts/images.mjs --test
case $boot in
${bootsOf(tests)
  .map((runs, index) => `${index + 1}) ${runs.map((files, run) => testCommand(files, run)).join("; ")};;`)
  .join("\n")}
esac
`;

/** The report is written inside the machine first: hostfs cannot replace files. */
const testCommand = (files, run) =>
  `bun test --timeout=600000 --reporter=junit --reporter-outfile=/var/tmp/report.xml ${files.join(" ")}; ` +
  `cp /var/tmp/report.xml /report/report-${run}.xml; rm -f /var/tmp/report.xml`;

/**
 * Files to run at each boot, in order: the integration tests at once, and of each folder of test/vm one file per boot. A
 * file of a folder has a run of its own, because one run does not keep the order of its files.
 */
function bootsOf(names) {
  const boots = [[]];
  const together = names.filter((name) => !(name in vmTests())).map((name) => `test/integration/${name}.test.ts`);
  if (together.length > 0) boots[0].push(together);
  for (const name of names) {
    for (const [index, file] of (vmTests()[name] ?? []).entries()) {
      boots[index] ??= [];
      boots[index].push([file]);
    }
  }
  return boots;
}

const vmTests = () =>
  Object.fromEntries(
    readdirSync(join(ROOT, "test/vm"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => [
        name,
        readdirSync(join(ROOT, "test/vm", name))
          .filter((file) => file.endsWith(".test.ts"))
          .sort()
          .map((file) => `test/vm/${name}/${file}`),
      ]),
  );

/** A disk with the project: sources, packages, the binary and the job. */
async function makeProjectDisk(folder, job) {
  const tree = join(folder, "project");
  mkdirSync(tree);
  const files = await runCommand("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
  const list = join(folder, "files");
  const wanted = files.stdout.split("\n").filter((path) => path !== "" && existsSync(join(ROOT, path)));
  // With the dot it may be a link to another folder.
  writeFileSync(list, [...wanted, "node_modules/.", "dist/kubelet-ts", ""].join("\n"));
  await must("Copying the project", "sh", [
    "-c",
    `tar -C "$1" --exclude=.cache -cf - -T "$2" | tar -C "$3" -xf -`,
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

/**
 * Boots the machine and waits until it has powered off; its console is copied to the output.
 * @returns {Promise<string>} the folder with its report
 */
async function runMachine(folder, { kernel, disk, project, boot }) {
  const report = join(folder, `report-${boot}`);
  mkdirSync(report);
  // Its memory is a file, preferably on a tmpfs.
  const { bavail, bsize } = existsSync("/dev/shm") ? statfsSync("/dev/shm") : { bavail: 0, bsize: 0 };
  const args = [
    "mem=3G",
    `uml_dir=${folder}/`,
    `ubd0=${join(folder, "changes")},${disk}`,
    `ubd1=${project}`,
    "root=/dev/ubda rw quiet systemd.show_status=false apparmor=1 security=apparmor con0=null,fd:1 con=null ssl=null",
    // This kernel corrupts its page tables when a process with an io_uring forks.
    "sysctl.kernel.io_uring_disabled=2",
    `report=${report} kubelet_ts_boot=${boot}`,
  ].flatMap((arg) => arg.split(" "));
  const log = join(folder, "console");
  const child = spawn("unshare", ["--mount", "sh", "-c", ENTER_KERNEL, "sh", kernel, CACHE, folder, ...args], {
    cwd: folder,
    // Every process of the machine is a member of this process group.
    detached: true,
    env: { ...process.env, TMPDIR: bavail * bsize > 3.5e9 ? "/dev/shm" : folder },
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
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.once(signal, end);
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      process.stdout.write(chunk);
      appendFileSync(log, chunk);
    });
  await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  clearTimeout(timer);
  end();
  for (const signal of signals) process.off(signal, end);
  return report;
}

/** Runs the kernel of the folder "$1", which sees the folders "$2" and "$3" where they are here. */
const ENTER_KERNEL = `kernel=$1
for path in /proc /dev "$2" "$3"; do mkdir -p "$kernel$path" && mount --rbind "$path" "$kernel$path" || exit 1; done
shift 3
exec chroot "$kernel" /usr/bin/linux.uml "$@"`;

/** Sums of the runs of one boot; a run without a report has failed. */
function count(report, runs) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (let run = 0; run < runs; run++) {
    const file = join(report, `report-${run}.xml`);
    const [head] = (existsSync(file) && /<testsuites\b[^>]*>/.exec(readFileSync(file, "utf8"))) || [""];
    const read = (name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
    const passed = read("tests") - read("skipped") - read("failures");
    total.passed += passed;
    total.skipped += read("skipped");
    total.failed += Math.max(read("failures"), passed > 0 ? 0 : 1);
  }
  return total;
}

async function main() {
  const [suite = "", ...rest] = process.argv.slice(2);
  const containerdImageStore = rest.includes(STORE_FLAG);
  const named = rest.filter((arg) => arg !== STORE_FLAG);
  if (!SUITES.includes(suite)) {
    throw new CannotContinue(suite === "" ? "Which machine?" : `There is no machine "${suite}".`, [
      `npm run test:vm -- ${SUITES.join("|")} [${STORE_FLAG}] [test…]`,
    ]);
  }
  const known = [
    ...readdirSync(join(ROOT, "test/integration")).map((file) => file.replace(/\.test\.ts$/, "")),
    ...Object.keys(vmTests()),
  ];
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new CannotContinue(`There is no test "${unknown}".`, [`Known: ${known.join(", ")}`]);
  checkMachine();
  heading("Set-up");
  await ensurePackages();
  await buildBinary();
  mkdirSync(CACHE, { recursive: true });
  const kernel = await ensureKernel();
  const disk = await ensureDisk(suite, kernel);
  const folder = mkdtempSync(join(tmpdir(), "kubelet-ts-vm-"));
  try {
    const tests = named.length > 0 ? named : TESTS;
    const project = await makeProjectDisk(folder, { tests, containerdImageStore });
    const total = { passed: 0, failed: 0, skipped: 0 };
    let machine = "did not come up";
    for (const [index, runs] of bootsOf(tests).entries()) {
      heading(`Debian ${suite}, boot ${index + 1}: ${runs.flat().join(" ")}`);
      const report = await runMachine(folder, { kernel, disk, project, boot: index + 1 });
      const { passed, failed, skipped } = count(report, runs.length);
      total.passed += passed;
      total.failed += failed;
      total.skipped += skipped;
      const file = join(report, "machine");
      if (existsSync(file)) machine = readFileSync(file, "utf8").trim();
    }
    heading("Summary");
    step("machine", machine);
    const { passed, failed, skipped } = total;
    console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await runMain(main);
