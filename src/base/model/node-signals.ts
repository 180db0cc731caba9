import type { EvictionSignal } from "./option-values.ts";

/** Capacity and available amount, by signal. A signal that cannot be read is absent. */
export type NodeSignals = Partial<Record<EvictionSignal, { capacity: number; available: number }>>;

/** Conditions of a node that is short of something. */
export type PressureType = "MemoryPressure" | "DiskPressure" | "PIDPressure";

/** Whether the node is short of something, and since when that is so (or is not). Wall time. */
export interface PressureState {
  is: boolean;
  since: Date;
}
