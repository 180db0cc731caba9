/** What the processes of one container were doing at one moment. */
export interface ProcessSample {
  /**
   * `gone`: the main process has ended, whatever the engine knows of it. `starting`: it is still the runtime's own, which
   * has yet to become the program. `busy`: something runs, wants to, or waits for a disk. `asleep`: everything waits.
   */
  state: "gone" | "starting" | "busy" | "asleep";
  /** How often its threads have left a CPU so far: when it is the same later, none of them has run meanwhile. */
  switches: number;
  /** CPU time so far. Unit: milliseconds, in steps of 10. */
  cpuMs: number;
}
