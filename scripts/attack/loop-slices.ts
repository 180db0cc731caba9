/**
 * Loaded into the kubelet under attack (`BUN_OPTIONS=--preload`): measures how long its event loop is held, in processor time of
 * the main thread. Other programs of the machine make a timer late, but take none of that time.
 */
import { appendFileSync } from "node:fs";

/** Time between two looks at the clock. Unit: milliseconds. */
const PERIOD_MS = 5;
/** Shorter slices are not noted. Unit: milliseconds. */
const NOTED_MS = 20;

const file = process.env.KUBELET_TS_ATTACK_SLICES;

/** Processor time of this thread so far. Unit: milliseconds. */
function readCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

if (file !== undefined && Bun.isMainThread) {
  let beforeMs = readCpuMs();
  const look = () => {
    const sliceMs = readCpuMs() - beforeMs;
    if (sliceMs > NOTED_MS) appendFileSync(file, `${process.pid} ${sliceMs.toFixed(1)}\n`);
    beforeMs = readCpuMs();
    setTimeout(look, PERIOD_MS).unref();
  };
  look();
}
