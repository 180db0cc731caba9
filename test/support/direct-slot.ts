import type { FileSlot } from "../../src/base/model/file-slot.ts";

/** Runs all work at once, without a deadline. */
export const DIRECT_SLOT: FileSlot = { attempt: async (work) => ({ value: await work() }) };
