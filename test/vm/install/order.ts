import { expect } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { RECORDS } from "./machine.ts";

/** The application started after its database was Ready, which takes 4 s from its start; both at this boot. */
export function expectPodsInOrder(): void {
  const seconds = (name: string) => Number(readFileSync(`${RECORDS}/${name}-start`, "utf8"));
  expect(seconds("app") - seconds("db")).toBeGreaterThanOrEqual(4);
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  const bootedAtMs = Date.now() - uptime * 1000;
  expect(statSync(`${RECORDS}/db-start`).mtimeMs).toBeGreaterThan(bootedAtMs);
}
