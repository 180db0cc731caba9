import { expect, test } from "bun:test";
import { join } from "node:path";
import { ServiceNotifier, sendDatagram } from "../../../src/base/host/service-notifier.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

function world(environment: Record<string, string>) {
  const sent: string[] = [];
  const clock = new FakeClock();
  const send = async (message: string) => void sent.push(message);
  return { sent, clock, notifier: new ServiceNotifier({ clock, logger: new RecordingLogger(), environment, send }) };
}

const WATCHED = { NOTIFY_SOCKET: "/run/x", WATCHDOG_USEC: "60000000" };

test("READY, then the watchdog at half its period until STOPPING", async () => {
  const { sent, clock, notifier } = world({ ...WATCHED, WATCHDOG_PID: String(process.pid) });
  await notifier.ready();
  await clock.advance(60_000);
  expect(sent).toEqual(["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]);
  await notifier.stopping();
  await clock.advance(600_000);
  expect(sent.at(-1)).toBe("STOPPING=1");
  expect(sent.length).toBe(5);
});

test("a status is sent when it changes, as one line", async () => {
  const { sent, notifier } = world({ NOTIFY_SOCKET: "/run/x" });
  await notifier.status("3 pods\nready");
  await notifier.status("3 pods\nready");
  expect(sent).toEqual(["STATUS=3 pods ready"]);
});

test.each([[{}], [{ WATCHDOG_USEC: "60000000" }]])(
  "without NOTIFY_SOCKET nothing is sent and no timer runs",
  async (environment: Record<string, string>) => {
    const { sent, clock, notifier } = world(environment);
    await notifier.ready();
    await clock.advance(600_000);
    expect(sent).toEqual([]);
  },
);

test("a process that is taken over by a new run does not end for systemd", async () => {
  const { sent, clock, notifier } = world(WATCHED);
  await notifier.ready();
  await notifier.restarting();
  await clock.advance(600_000);
  expect(sent.at(-1)).toMatch(/^RELOADING=1\nMONOTONIC_USEC=\d+$/);
  expect(sent.join()).not.toContain("STOPPING");
});

test("the watchdog of another process is not fed", async () => {
  const { sent, clock, notifier } = world({ ...WATCHED, WATCHDOG_PID: "1" });
  await notifier.ready();
  await clock.advance(600_000);
  expect(sent).toEqual(["READY=1"]);
});

/** Prints the first datagram on a socket at the path, or `@name`. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace("@", "\\0", 1))
print("bound", flush=True)
print(s.recv(4096).decode(), flush=True)
`;

test.skipIf(!Bun.which("python3"))("a datagram arrives at a path and at an abstract name", async () => {
  for (const address of [join(tempDir(), "notify"), `@kubelet-ts-test-${process.pid}`]) {
    const receiver = Bun.spawn(["python3", "-c", RECEIVER, address], { stdout: "pipe" });
    const reader = receiver.stdout.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain("bound");
    await sendDatagram(address, "READY=1");
    let rest = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) rest += piece.value;
    expect(rest.trim()).toBe("READY=1");
  }
});

test("a socket without a receiver is an error", async () => {
  await expect(sendDatagram(join(tempDir(), "none"), "READY=1")).rejects.toThrow("nothing receives on NOTIFY_SOCKET");
});
