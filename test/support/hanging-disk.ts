import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, existsSync, openSync } from "node:fs";
import { libcPath } from "../../src/base/host/libc.ts";
import { mounting } from "./temp-dir.ts";

const DETACH = 2;

/** Whether this machine lets tests mount a FUSE file system; reports it once when not. */
export const canHang = mounting.ok && existsSync("/dev/fuse");
if (!canHang) console.warn("tests of disks that hang are skipped: they need root and /dev/fuse");

/** Mounts a file system over a directory that never answers: every call waits. @returns ends it: what waits fails then */
export function hangingDisk(directory: string): () => void {
  const { symbols, close } = dlopen(libcPath(), {
    mount: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    umount2: { args: [FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
  });
  const text = (value: string) => ptr(Buffer.from(`${value}\0`));
  const device = openSync("/dev/fuse", "r+");
  const options = `fd=${device},rootmode=40000,user_id=0,group_id=0,allow_other`;
  if (symbols.mount(text("hanging"), text(directory), text("fuse"), 0, text(options)) !== 0) {
    closeSync(device);
    throw new Error(`cannot mount a FUSE file system over ${directory}`);
  }
  return () => {
    symbols.umount2(text(directory), DETACH);
    closeSync(device);
    close();
  };
}
