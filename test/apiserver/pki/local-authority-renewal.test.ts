import { expect, test } from "bun:test";
import type { LocalCertificates } from "../../../src/apiserver/pki/local-authority.ts";
import { CertificateRenewer } from "../../../src/apiserver/pki/local-authority.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const DAY_MS = 24 * 3_600_000;

function aRenewer() {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  let count = 0;
  let problem = "";
  const prepare = async (): Promise<LocalCertificates> => {
    if (problem !== "") throw new Error(problem);
    const nowMs = clock.now().getTime();
    const pair = { cert: `certificate ${++count}`, key: "" };
    return { authorities: [], server: pair, admin: pair, goodFrom: nowMs - DAY_MS, goodUntil: nowMs + 335 * DAY_MS };
  };
  const renewer = new CertificateRenewer({ prepare, clock, logger });
  return {
    clock,
    logger,
    renewer,
    failWith: (text: string) => {
      problem = text;
    },
    /** The certificate in use after the listener has checked. */
    served: async () => {
      renewer.current();
      await clock.advance(1_000);
      return renewer.current().server.cert;
    },
  };
}

const ready = async ({ renewer, clock }: ReturnType<typeof aRenewer>) => {
  let count = 0;
  void renewer.start(() => count++);
  await clock.advance(1_000);
  return () => count;
};

test("certificates are renewed when they are due, without a restart", async () => {
  const node = aRenewer();
  await ready(node);
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(334 * DAY_MS);
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(DAY_MS);
  expect(await node.served()).toBe("certificate 2");
  expect(await node.served()).toBe("certificate 2");
});

test("a clock that is set makes other ones when they are not valid at its time", async () => {
  const node = aRenewer();
  await ready(node);
  node.clock.jump("1970-01-01T00:00:10Z");
  expect(await node.served()).toBe("certificate 2");
});

test("a renewal that fails leaves the old ones in use and is tried again after an hour", async () => {
  const node = aRenewer();
  await ready(node);
  node.failWith("no space left on device");
  await node.clock.advance(336 * DAY_MS);
  expect([await node.served(), await node.served()]).toEqual(["certificate 1", "certificate 1"]);
  expect(node.logger.lines).toEqual(["error The local API keeps its certificates: no space left on device"]);
  node.failWith("");
  expect(await node.served()).toBe("certificate 1");
  await node.clock.advance(3_600_000);
  expect(await node.served()).toBe("certificate 2");
});

test("without certificates at the start the port opens as soon as they can be made", async () => {
  const node = aRenewer();
  node.failWith("no space left on device");
  const count = await ready(node);
  expect(count()).toBe(0);
  node.failWith("");
  await node.clock.advance(60_000);
  expect(count()).toBe(1);
  expect(await node.served()).toBe("certificate 1");
});

test("a process that ends does not open the port late", async () => {
  const node = aRenewer();
  node.failWith("no space left on device");
  const count = await ready(node);
  node.failWith("");
  node.renewer.stop();
  await node.clock.advance(60_000);
  expect([count(), node.clock.pendingTimers]).toEqual([0, 0]);
});
