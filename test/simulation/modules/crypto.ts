import { machine } from "../machine.ts";

/** node:crypto of the simulated machine: chance comes from the seed. */
export * from "node:crypto";

export const randomUUID = () => machine.time.programRandom.uuid();

export const randomBytes = (count: number) => Buffer.from(machine.time.programRandom.hex(count * 2), "hex");
