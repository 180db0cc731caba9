/**
 * The programs of a Kubernetes control plane, built from Debian's source package `kubernetes` and kept outside the tree.
 * Nothing below /etc/apt changes: the package is looked up with a separate source list.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { aptInstall, isAptMachine } from "./apt.mjs";
import { runCommand } from "./run-command.mjs";
import { CannotContinue, sayDuration, step } from "./say.mjs";

/** Folder name of the result. Its last number changes with the recipe. */
const RESULT = "kubernetes-1.20.2-1";

const PROGRAMS = ["kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl"];

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kubelet-ts");

const SOURCE_LIST =
  "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n";

const BUILD_PACKAGES = ["golang-1.19-go", "golang-github-modern-go-reflect2-dev", "dpkg-dev", "rsync", "make"];

/** The archive is not a git checkout, so the version that the build reads from git is set. */
const VERSION_FILE = `KUBE_GIT_COMMIT='faecb196815e248d3ecfb03c680a4507229c2a56'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='v1.20.2'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
`;

const BUILD_LIMIT_MS = 40 * 60_000;

async function must(what, command, args, options = {}) {
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code !== 0) throw new CannotContinue(`${what} failed:`, `${stdout}\n${stderr}`.trim().split("\n").slice(-12));
}

/** Downloads and unpacks the source package. An unpacked tree appears under its name only when it is complete. */
async function ensureSource(/** @type {string} */ build) {
  const tree = join(build, "kubernetes");
  if (existsSync(tree)) return tree;
  const lists = join(build, "apt");
  mkdirSync(join(lists, "lists", "partial"), { recursive: true });
  writeFileSync(join(lists, "sources.list"), SOURCE_LIST);
  const apt = [
    "-q",
    "-o",
    `Dir::Etc::sourcelist=${join(lists, "sources.list")}`,
    "-o",
    "Dir::Etc::sourceparts=-",
    "-o",
    `Dir::State::lists=${join(lists, "lists")}`,
    "-o",
    "APT::Sandbox::User=root",
  ];
  await must("Reading the list of source packages", "apt-get", [...apt, "update"]);
  await must(
    "Downloading the source package kubernetes",
    "apt-get",
    [...apt, "source", "--download-only", "kubernetes"],
    {
      cwd: build,
    },
  );
  const description = readdirSync(build).find((name) => /^kubernetes_.*\.dsc$/.test(name));
  if (!description) throw new CannotContinue(`apt-get left no kubernetes_*.dsc in ${build}.`);
  rmSync(`${tree}.new`, { recursive: true, force: true });
  await must("Unpacking the source package", "dpkg-source", ["-x", description, `${tree}.new`], { cwd: build });
  // With the vendored release, encoding JSON crashes in programs that Go 1.19 compiled.
  const reflect = join(`${tree}.new`, "vendor/github.com/modern-go/reflect2");
  rmSync(reflect, { recursive: true });
  cpSync("/usr/share/gocode/src/github.com/modern-go/reflect2", reflect, {
    recursive: true,
    filter: (path) => !path.endsWith("go.mod"),
  });
  const workspace = join(`${tree}.new`, ".go/src/k8s.io");
  mkdirSync(workspace, { recursive: true });
  symlinkSync("../../..", join(workspace, "kubernetes"));
  renameSync(`${tree}.new`, tree);
  return tree;
}

async function make(/** @type {string} */ build) {
  const tree = await ensureSource(build);
  const versionFile = join(build, "version");
  writeFileSync(versionFile, VERSION_FILE);
  await must("Building Kubernetes", "make", [`WHAT=${PROGRAMS.map((name) => `cmd/${name}`).join(" ")}`], {
    cwd: join(tree, ".go/src/k8s.io/kubernetes"),
    env: {
      ...process.env,
      // The scripts of the build look for the tree below GOPATH by the path they were called with.
      PWD: join(tree, ".go/src/k8s.io/kubernetes"),
      GOPATH: join(tree, ".go"),
      GOFLAGS: "",
      PATH: `/usr/lib/go-1.19/bin:${process.env.PATH ?? ""}`,
      CGO_ENABLED: "0",
      KUBE_GIT_VERSION_FILE: versionFile,
    },
    timeoutMs: BUILD_LIMIT_MS,
  });
  return join(tree, "_output/local/go/bin");
}

/**
 * Builds them when they are not in the cache. An interrupted build is resumed; the result appears under its name
 * only when it is complete.
 * @returns {Promise<string>} the folder with the programs
 */
export async function ensureKubernetes() {
  const result = join(CACHE, RESULT);
  if (existsSync(result)) {
    step("cluster", `Kubernetes 1.20.2: already built (${result})`);
    return result;
  }
  if (!isAptMachine() || process.getuid?.() !== 0)
    throw new CannotContinue("Kubernetes is built from Debian's source package: this needs root on Debian or Ubuntu.");
  const started = performance.now();
  step("cluster", `building Kubernetes 1.20.2 from Debian's source package, once; this takes five minutes and more`);
  await aptInstall(BUILD_PACKAGES);
  const build = join(CACHE, "build");
  mkdirSync(build, { recursive: true });
  const programs = await make(build);
  const scratch = `${result}.new-${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  for (const name of PROGRAMS) cpSync(join(programs, name), join(scratch, name));
  renameSync(scratch, result);
  rmSync(build, { recursive: true, force: true });
  step("cluster", `built in ${sayDuration(performance.now() - started)} (${result})`);
  return result;
}
