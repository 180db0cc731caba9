import { machine } from "../machine.ts";

/** node:fs/promises of the simulated machine: what it does is done at once. */
export const {
  open,
  readFile,
  writeFile,
  stat,
  lstat,
  readdir,
  realpath,
  rename,
  rm,
  statfs,
  mkdir,
  readlink,
  unlink,
  access,
} = machine.disk.fs.promises;
