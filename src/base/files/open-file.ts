import { closeSync, openSync } from "node:fs";

/** A file that is open to the end of the block which declares it with `using`. */
export interface OpenFile extends Disposable {
  readonly descriptor: number;
}

/** @throws the system's error */
export function openFile(path: string, flags: string | number): OpenFile {
  const descriptor = openSync(path, flags);
  return { descriptor, [Symbol.dispose]: () => closeSync(descriptor) };
}
