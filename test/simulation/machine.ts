import type { SimulatedDisk } from "./simulated-disk.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The machine that the modules of `modules/` show to the program; one per process of the simulation. */
export const machine: { disk: SimulatedDisk; time: VirtualTime; hostName: string } = {
  disk: undefined as unknown as SimulatedDisk,
  time: undefined as unknown as VirtualTime,
  hostName: "node1",
};
