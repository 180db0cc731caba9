/** State of the processes of one container at one moment. */
export interface ProcessSample {
  /**
   * `gone`: the main process has ended, even if the engine does not know yet. `starting`: it is still the runtime's own, which
   * has yet to become the program. `busy`: something runs, wants to, or waits for a disk. `asleep`: everything waits.
   */
  state: "gone" | "starting" | "busy" | "asleep";
  /** Context switches of its threads so far: an unchanged value means that none of them has run. */
  switches: number;
  /** CPU time so far. Unit: milliseconds, in steps of 10. */
  cpuMs: number;
}
