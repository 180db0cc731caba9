/** As Go and Docker name them. */
export type PauseArchitecture = "amd64" | "arm64";

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
