import { connect, type NetConnectOpts, type Socket } from "node:net";
import { join } from "node:path";
import { createDeflate } from "node:zlib";
import { encodeData } from "../../src/server/spdy.ts";
import { sessionLink } from "../../test/support/page.ts";
import { openFrame, SpdyClient } from "../../test/support/spdy-client.ts";
import { type Attack, type AttackTarget, frame, pour } from "./attack.ts";
import { residentMegabytes } from "./server-attacks.ts";

const EXEC_PROTOCOL = "v4.channel.k8s.io";
const WEB_SOCKET = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const SPDY = "Upgrade: SPDY/3.1\r\n";

/** A connection whose handshake was answered with `status`; after that nothing is read of it. */
async function upgrade(to: NetConnectOpts, path: string, headers: string): Promise<{ socket: Socket; status: number }> {
  const socket = connect(to).on("error", () => {});
  const { promise, resolve } = Promise.withResolvers<number>();
  socket.once("data", (data) => {
    socket.pause();
    resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString("latin1"))?.[1] ?? 0));
  });
  socket.once("close", () => resolve(0));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n${headers}\r\n`);
  return { socket, status: await promise };
}

const apiOf = ({ node }: AttackTarget): NetConnectOpts => ({ path: join(node.rootDir, "api.sock") });

/** Path of a bystander in the API. */
async function podPath({ node }: AttackTarget, name = "bystander-0"): Promise<string> {
  return `/api/v1/namespaces/default/pods/${(await node.pod(name))!.metadata.name}`;
}

const commandQuery = (script: string) => `container=app&command=sh&command=-c&command=${encodeURIComponent(script)}`;

const openSpdy = (target: AttackTarget, path: string, protocol: string) =>
  upgrade(apiOf(target), path, `${SPDY}X-Stream-Protocol-Version: ${protocol}\r\n`);

/** A block of headers of at most 1 MB that decompresses to a thousand times as much. */
async function headerBomb(): Promise<Buffer> {
  const parts: Buffer[] = [];
  const deflate = createDeflate({ level: 9 }).on("data", (part: Buffer) => parts.push(part));
  for (let megabyte = 0; megabyte < 900; megabyte++) {
    if (!deflate.write(Buffer.alloc(1e6))) await new Promise((done) => deflate.once("drain", done));
  }
  deflate.end();
  await new Promise((done) => deflate.once("end", done));
  return Buffer.concat(parts);
}

const serverPod = (name: string, ...command: string[]) => {
  const containers = [{ name: "app", image: "busybox:test", command }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { terminationGracePeriodSeconds: 0, containers } };
};
/** Its port 9 sends without end and takes nothing. */
const firehose = serverPod("firehose", "nc", "-ll", "-p", "9", "-e", "yes");

/** The cookie of a session of the page. */
async function logIn({ node }: AttackTarget): Promise<string> {
  const link = new URL(await sessionLink(node));
  const token = /token=([^&]+)/.exec(link.href)?.[1] ?? link.hash.slice(1);
  const answer = await fetch(new URL("/page/login", link), { method: "POST", body: JSON.stringify({ token }) });
  if (!answer.ok) throw new Error(`The page refused the link: ${answer.status} ${await answer.text()}`);
  return answer.headers.get("Set-Cookie")?.split(";")[0] ?? "";
}

async function openShells(target: AttackTarget, count: number) {
  const { uid } = (await target.node.pod("bystander-0"))!.metadata;
  const cookie = await logIn(target);
  const headers = `${WEB_SOCKET}Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nCookie: ${cookie}\r\n`;
  const to = { port: target.node.cadvisorPort, host: "127.0.0.1" };
  const path = `/page/api/pods/${uid}/shell?container=app`;
  const all = await Promise.all(Array.from({ length: count }, () => upgrade(to, path, headers)));
  const opened = all.filter(({ status }) => status === 101).map(({ socket }) => socket);
  for (const { socket, status } of all) if (status !== 101) socket.destroy();
  return opened;
}

const typed = (text: string) => frame(2, Buffer.concat([Buffer.from([0]), Buffer.from(text)]));

const close = (sockets: readonly Socket[]) => {
  for (const socket of sockets) socket.destroy();
};

const countRelays = () =>
  Number(Bun.spawnSync(["sh", "-c", "ps -eo args | grep -c '[_]_relay-loopback'"]).stdout.toString());

/** Attacks on shells, commands and forwarded ports. */
export const streamAttacks: readonly Attack[] = [
  {
    name: "page-shells",
    about: "100 shells of the page at once; those that open run `yes`, of which nothing is read",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const shells = await openShells(target, 100);
      for (const socket of shells) socket.write(typed("yes\n"));
      await Bun.sleep(15_000);
      close(shells);
      return [{ what: "shells", unit: "", value: shells.length || Number.POSITIVE_INFINITY, atMost: 16 }];
    },
  },
  ...(["", "x"] as const).map(
    (text): Attack => ({
      name: text === "" ? "shell-empty" : "shell-typed",
      about: `16 shells of the page whose command reads nothing; each gets millions of messages of ${text.length} bytes`,
      maxGrowthMegabytes: 64,
      run: async (target) => {
        const shells = await openShells(target, 16);
        for (const socket of shells) socket.write(typed("stty raw -echo; exec sleep 1000\n"));
        await Bun.sleep(2_000);
        const bytes = Buffer.concat(Array.from({ length: 50_000 }, () => typed(text)));
        await Promise.all(shells.map((socket) => pour(socket, bytes, 20, 60)));
        await Bun.sleep(1_000);
        close(shells);
        return [];
      },
    }),
  ),
  {
    name: "unread-commands",
    about: "100 clients of the API run `yes` and read nothing, half of them over SPDY",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const path = `${await podPath(target)}/exec?${commandQuery("exec yes")}&stdout=true`;
      const open = async (index: number) => {
        if (index % 2 === 0)
          return (await upgrade(apiOf(target), path, `${WEB_SOCKET}Sec-WebSocket-Protocol: ${EXEC_PROTOCOL}\r\n`))
            .socket;
        const { socket } = await openSpdy(target, path, EXEC_PROTOCOL);
        const streams = new SpdyClient();
        for (const [at, streamtype] of ["error", "stdout"].entries())
          socket.write(await streams.open(2 * at + 1, { streamtype }));
        return socket;
      };
      const sockets: Socket[] = [];
      for (let index = 0; index < 100; index += 10)
        sockets.push(...(await Promise.all(Array.from({ length: 10 }, (_, at) => open(index + at)))));
      await Bun.sleep(10_000);
      close(sockets);
      return [];
    },
  },
  {
    name: "unread-forwards",
    about: "200 clients forward a port that sends without end, and read nothing",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      target.node.writeManifest("firehose.json", firehose);
      await target.node.untilPhase("firehose", "Running");
      const path = `${await podPath(target, "firehose")}/portforward`;
      const sockets: Socket[] = [];
      for (let index = 0; index < 200; index++) {
        const { socket } = await openSpdy(target, path, "portforward.k8s.io");
        const streams = new SpdyClient();
        for (const [at, streamtype] of ["error", "data"].entries())
          socket.write(await streams.open(2 * at + 1, { streamtype, port: "9", requestid: "1" }));
        sockets.push(socket);
      }
      await Bun.sleep(10_000);
      close(sockets);
      return [];
    },
  },
  {
    name: "spdy-streams",
    about: "three connections that forward a port 450 times, each with 200 KB for a program that reads nothing",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      target.node.writeManifest("firehose.json", firehose);
      await target.node.untilPhase("firehose", "Running");
      const path = `${await podPath(target, "firehose")}/portforward`;
      const attackers = Array.from({ length: 3 }, async () => {
        const { socket } = await openSpdy(target, path, "portforward.k8s.io");
        const streams = new SpdyClient();
        for (let index = 0; index < 450; index++) {
          const id = 4 * index + 1;
          socket.write(await streams.open(id, { streamtype: "error", port: "9", requestid: `${index}` }));
          socket.write(await streams.open(id + 2, { streamtype: "data", port: "9", requestid: `${index}` }));
        }
        for (let index = 0; index < 450; index++) {
          for (let part = 0; part < 200; part += 20)
            socket.write(encodeData(4 * index + 3, false, Buffer.alloc(20_000)));
        }
        return socket;
      });
      const sockets = await Promise.all(attackers);
      await Bun.sleep(5_000);
      close(sockets);
      return [];
    },
  },
  {
    name: "loopback-ports",
    about: "a connection that forwards a port 200 times that listens on the pod's loopback only",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      target.node.writeManifest("inner.json", serverPod("inner", "httpd", "-f", "-p", "127.0.0.1:81"));
      await target.node.untilPhase("inner", "Running");
      const { socket } = await openSpdy(target, `${await podPath(target, "inner")}/portforward`, "portforward.k8s.io");
      const streams = new SpdyClient();
      let most = 0;
      for (let index = 0; index < 200; index++) {
        for (const [at, streamtype] of ["error", "data"].entries())
          socket.write(
            await streams.open(4 * index + 2 * at + 1, { streamtype, port: "81", requestid: String(index) }),
          );
        if (index % 20 === 0) most = Math.max(most, countRelays());
      }
      for (let at = 0; at < 20; at++, await Bun.sleep(200)) most = Math.max(most, countRelays());
      close([socket]);
      return [{ what: "processes that relay to a loopback", unit: "", value: most, atMost: 64 }];
    },
  },
  {
    name: "spdy-headers",
    about: "20 connections whose headers decompress from 250 KB to 250 MB",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const path = `${await podPath(target)}/exec?${commandQuery("sleep 60")}&stdout=true`;
      const bomb = await headerBomb();
      const attackers = Array.from({ length: 20 }, async () => {
        const { socket } = await openSpdy(target, path, EXEC_PROTOCOL);
        socket.write(openFrame(1, bomb.subarray(0, 250_000)));
        return socket;
      });
      const sockets = await Promise.all(attackers);
      await Bun.sleep(10_000);
      close(sockets);
      return [];
    },
  },
  {
    name: "spdy-trickle",
    about:
      "10 connections that send a frame of 1 MB in pieces of two bytes, and one that sends millions of small frames",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const path = `${await podPath(target)}/exec?${commandQuery("exec sleep 60")}&stdin=true`;
      const start = async () => {
        const { socket } = await openSpdy(target, path, EXEC_PROTOCOL);
        socket.setNoDelay(true);
        const streams = new SpdyClient();
        for (const [at, streamtype] of ["error", "stdin"].entries())
          socket.write(await streams.open(2 * at + 1, { streamtype }));
        return socket;
      };
      const small = Buffer.concat(Array.from({ length: 50_000 }, () => encodeData(3, false, Buffer.from("x"))));
      const trickles = await Promise.all(Array.from({ length: 10 }, start));
      for (const socket of trickles) socket.write(encodeData(3, false, Buffer.alloc(1_000_000)).subarray(0, 900_000));
      const endMs = performance.now() + 15_000;
      const trickle = async (socket: Socket) => {
        for (; performance.now() < endMs && !socket.destroyed; await Bun.sleep(0))
          for (let at = 0; at < 20; at++) socket.write("xx");
      };
      const other = await start();
      await Promise.all([...trickles.map(trickle), pour(other, small, 15, 50)]);
      close([...trickles, other]);
      return [];
    },
  },
  {
    name: "page-streams",
    about: "500 open pages that read nothing, while 30 pods come and go five times",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node, pid } = target;
      const to = { port: node.cadvisorPort, host: "127.0.0.1" };
      const opened = await Promise.all(Array.from({ length: 500 }, () => upgrade(to, "/page/stream", WEB_SOCKET)));
      const before = residentMegabytes(pid);
      for (let round = 0; round < 10; round++) {
        const text = "x".repeat(20_000);
        for (let index = 0; index < 30; index++) {
          const spec = { containers: [{ name: "app", image: "no-such-image:1", imagePullPolicy: "Never" }] };
          const metadata = { name: `gone-${index}`, annotations: { text: `${text}${round}` } };
          if (round % 2) node.removeManifest(`gone-${index}.json`);
          else node.writeManifest(`gone-${index}.json`, { apiVersion: "v1", kind: "Pod", metadata, spec });
        }
        await Bun.sleep(2_000);
      }
      const after = residentMegabytes(pid);
      close(opened.map(({ socket }) => socket));
      const open = opened.filter(({ status }) => status === 101).length;
      return [
        { what: "open pages", unit: "", value: open || Number.POSITIVE_INFINITY, atMost: 32 },
        { what: "growth by what is not read", unit: "MB", value: after - before, atMost: 64 },
      ];
    },
  },
];
