import { tarArchive } from "../base/files/tar.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { DockerUnreachableError, known } from "./engine/docker-error.ts";
import type { ImageInspect } from "./engine/schemas.ts";

/** Tag of the sandboxes' image; the image garbage collection recognizes it. It is never collected. */
export const PAUSE_IMAGE = "kubelet-ts/pause:1";

/** Label of the image, and so of each sandbox made from it, even if the image is renamed. */
const PAUSE_IMAGE_LABEL = "kubelet-ts.io/pause";

interface PauseImageOptions {
  /** `--pod-infra-container-image`: used instead of the embedded one, and pulled when it is not there. */
  override?: string | undefined;
  /** How `override` is pulled, with credentials; without any when absent. */
  pull?: ((reference: string, signal: AbortSignal | undefined) => Promise<unknown>) | undefined;
}

/**
 * Ensures that the engine has the sandbox image, which is loaded through the API: no registry is needed.
 * @returns its id
 * @throws Error when `override` cannot be pulled, and for a machine that is neither x86-64 nor arm64
 */
export async function ensurePauseImage(
  client: DockerClient,
  options: PauseImageOptions = {},
  signal?: AbortSignal,
): Promise<string> {
  const { override } = options;
  if (override) {
    const present = await known(client.inspectImage(override, { signal }));
    if (present) return present.Id;
    try {
      if (options.pull) await options.pull(override, signal);
      else await client.pullImage(override, { signal });
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof DockerUnreachableError) throw cause;
      // The engine's message need not name the image, and no pod manifest names it.
      const why = (cause as Error).message;
      throw new Error(
        `Cannot pull image "${override}" of the sandboxes, which --pod-infra-container-image names: ${why}`,
        { cause },
      );
    }
    return (await client.inspectImage(override, { signal })).Id;
  }
  const wanted = buildPauseImage(toPauseArchitecture((await client.engine({ signal })).architecture));
  const present = await known(client.inspectImage(PAUSE_IMAGE, { signal }));
  if (present && isPauseImage(present, wanted)) return present.Id;
  await client.loadImage(wanted.archive, { signal });
  const loaded = await client.inspectImage(PAUSE_IMAGE, { signal });
  if (!isPauseImage(loaded, wanted)) {
    throw new Error(`The engine loaded "${PAUSE_IMAGE}" as something else: ${loaded.Id} (${loaded.Architecture})`);
  }
  return loaded.Id;
}

/** An image as `docker save` would write it, and its identity. */
interface BuiltPauseImage {
  /** Its id in the classic image store: sha256 of its config. */
  id: string;
  /** Digest of its only layer: the same in every image store. */
  layer: string;
  /** Body of `/images/load`. */
  archive: Uint8Array<ArrayBuffer>;
}

/** Every sandbox needs it, so it is built once. */
const built = new Map<PauseArchitecture, BuiltPauseImage>();

/** The image, built without a registry. Always the same bytes for an architecture. */
export function buildPauseImage(architecture: PauseArchitecture): BuiltPauseImage {
  return built.getOrInsertComputed(architecture, build);
}

function build(architecture: PauseArchitecture): BuiltPauseImage {
  const layerTar = tarArchive([{ path: "pause", mode: 0o755, data: pauseExecutable(architecture) }]);
  const layerHex = sha256(layerTar);
  const layer = `sha256:${layerHex}`;
  const config = json({
    architecture,
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config: {
      Entrypoint: ["/pause"],
      User: "65535:65535",
      WorkingDir: "/",
      Labels: { [PAUSE_IMAGE_LABEL]: "1" },
    },
    rootfs: { type: "layers", diff_ids: [layer] },
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "kubelet-ts" }],
  });
  const configHex = sha256(config);
  const archive = tarArchive([
    {
      path: "manifest.json",
      mode: 0o644,
      data: json([{ Config: `${configHex}.json`, RepoTags: [PAUSE_IMAGE], Layers: [`${layerHex}/layer.tar`] }]),
    },
    { path: `${configHex}.json`, mode: 0o644, data: config },
    { path: `${layerHex}/`, mode: 0o755, data: new Uint8Array() },
    { path: `${layerHex}/layer.tar`, mode: 0o644, data: layerTar },
  ]);
  return { id: `sha256:${configHex}`, layer, archive };
}

/** Our label or our only layer: true for an image of any kubelet-ts version. */
export const isAnyPauseImage = (labels: Readonly<Record<string, string>>): boolean => PAUSE_IMAGE_LABEL in labels;

function isPauseImage(image: ImageInspect, wanted: BuiltPauseImage): boolean {
  const sameContent = image.RootFS.Layers.length === 1 && image.RootFS.Layers[0] === wanted.layer;
  return sameContent && image.Config.Entrypoint?.[0] === "/pause" && image.Config.User === "65535:65535";
}

/** Architectures by the names that engines give them. */
const ARCHITECTURES = new Map<string, PauseArchitecture>(
  Object.entries({ amd64: "amd64", x86_64: "amd64", arm64: "arm64", aarch64: "arm64" } as const),
);

function toPauseArchitecture(name: string): PauseArchitecture {
  const architecture = ARCHITECTURES.get(name);
  if (architecture) return architecture;
  throw new Error(`There is no embedded pause image for "${name}": name one with --pod-infra-container-image`);
}

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

/** As Go and Docker name them. */
type PauseArchitecture = "amd64" | "arm64";

/**
 * The process of a sandbox, as machine code for Linux. It is process 1 of the pod's namespaces:
 *
 * 1. block INT, TERM and CHLD, so that they wait for us although process 1 has no handlers;
 * 2. sleep in rt_sigtimedwait without a time;
 * 3. CHLD: reap dead children (orphans of a shared pid namespace), and sleep again;
 *    INT or TERM: exit with 0 at once; anything else (an interrupted wait): sleep again.
 */
const MACHINE_CODE: Record<PauseArchitecture, string> = {
  amd64: `
    6802400100        push 0x14002            ; the set {INT 2, TERM 15, CHLD 17}: bits 1, 14, 16
    b80e000000        mov eax, 14             ; rt_sigprocmask
    31ff              xor edi, edi            ; SIG_BLOCK
    4889e6            mov rsi, rsp
    31d2              xor edx, edx
    41ba08000000      mov r10d, 8             ; bytes of the set
    0f05              syscall
    b880000000  wait: mov eax, 128            ; rt_sigtimedwait
    4889e7            mov rdi, rsp
    31f6              xor esi, esi
    31d2              xor edx, edx            ; no time-out
    41ba08000000      mov r10d, 8
    0f05              syscall
    83f802            cmp eax, 2
    7425              je done
    83f80f            cmp eax, 15
    7420              je done
    83f811            cmp eax, 17
    75dd              jne wait
    b83d000000  reap: mov eax, 61             ; wait4
    4883cfff          or rdi, -1              ; any child
    31f6              xor esi, esi
    ba01000000        mov edx, 1              ; WNOHANG
    4531d2            xor r10d, r10d
    0f05              syscall
    85c0              test eax, eax
    7fe7              jg reap
    ebc2              jmp wait
    b8e7000000  done: mov eax, 231            ; exit_group
    31ff              xor edi, edi
    0f05              syscall`,
  // Instructions of 32 bits, written as numbers; stored little-endian.
  arm64: `
    d2880049          mov x9, 0x4002
    f2a00029          movk x9, 1, lsl 16
    f81f0fe9          str x9, [sp, -16]!
    d28010e8          mov x8, 135             ; rt_sigprocmask
    d2800000          mov x0, 0
    910003e1          mov x1, sp
    d2800002          mov x2, 0
    d2800103          mov x3, 8
    d4000001          svc 0
    d2801128    wait: mov x8, 137             ; rt_sigtimedwait
    910003e0          mov x0, sp
    d2800001          mov x1, 0
    d2800002          mov x2, 0
    d2800103          mov x3, 8
    d4000001          svc 0
    7100081f          cmp w0, 2
    540001c0          b.eq done
    71003c1f          cmp w0, 15
    54000180          b.eq done
    7100441f          cmp w0, 17
    54fffea1          b.ne wait
    d2802088    reap: mov x8, 260             ; wait4
    92800000          mov x0, -1
    d2800001          mov x1, 0
    d2800022          mov x2, 1
    d2800003          mov x3, 0
    d4000001          svc 0
    7100001f          cmp w0, 0
    54ffff2c          b.gt reap
    17ffffec          b wait
    d2800bc8    done: mov x8, 94              ; exit_group
    d2800000          mov x0, 0
    d4000001          svc 0`,
};

const ELF_MACHINE: Record<PauseArchitecture, number> = { amd64: 62, arm64: 183 };

const LOAD_ADDRESS = 0x400000;
const FILE_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const HEADERS_BYTES = FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES;

/** The program as a static ELF file: one header, one segment that is read and run, no sections. */
export function pauseExecutable(architecture: PauseArchitecture): Uint8Array<ArrayBuffer> {
  const code = machineCode(architecture);
  const file = new Uint8Array(HEADERS_BYTES + code.length);
  const view = new DataView(file.buffer);
  const u16 = (at: number, value: number) => view.setUint16(at, value, true);
  const u32 = (at: number, value: number) => view.setUint32(at, value, true);
  const u64 = (at: number, value: number) => view.setBigUint64(at, BigInt(value), true);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // ELF, 64 bit, little-endian, version 1
  u16(16, 2); // ET_EXEC
  u16(18, ELF_MACHINE[architecture]);
  u32(20, 1); // version
  u64(24, LOAD_ADDRESS + HEADERS_BYTES); // entry
  u64(32, FILE_HEADER_BYTES); // where the program headers are
  u16(52, FILE_HEADER_BYTES);
  u16(54, PROGRAM_HEADER_BYTES);
  u16(56, 1); // one of them
  u16(58, 64); // size of a section header, of which there are none
  u32(64, 1); // PT_LOAD
  u32(68, 5); // readable, executable
  u64(80, LOAD_ADDRESS);
  u64(88, LOAD_ADDRESS);
  u64(96, file.length);
  u64(104, file.length);
  u64(112, 0x10000); // alignment; arm64 kernels may have pages of 64 KiB
  file.set(code, HEADERS_BYTES);
  return file;
}

function machineCode(architecture: PauseArchitecture): Uint8Array {
  const words = MACHINE_CODE[architecture]
    .trim()
    .split("\n")
    .map((line) => Buffer.from(line.trim().split(/\s/, 1)[0] ?? "", "hex"));
  return Buffer.concat(architecture === "arm64" ? words.map((word) => word.reverse()) : words);
}
