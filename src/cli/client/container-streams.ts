import type { Pod } from "../../base/api/pod.ts";
import { dialPod } from "../../base/host/pod-dialer.ts";
import { apiSocketOf } from "../../base/host/root-directory.ts";
import type { ProcessSession, StreamSelection } from "../../base/model/container-access.ts";
import { allStatusesOf, findContainer } from "../../base/model/pod.ts";
import type { PodConnection } from "../../base/model/pod-dialer.ts";
import type { DockerHost } from "../../docker/docker-host.ts";
import { CHANNEL } from "../../server/channel-protocol.ts";
import { CommandError, type CommandRequest } from "../sub-command.ts";
import type { ApiObject } from "./api-client.ts";
import { ApiWebSocket } from "./api-web-socket.ts";
import { chooseContainers, choosePod } from "./choose-pod.ts";
import { engineOf } from "./engine-reader.ts";
import { localInstances } from "./find-kubelet.ts";
import { readKnownPods } from "./kubelet-api.ts";

/** Streams into one running container, and into its pod. */
export interface ContainerStreams {
  exec(argv: readonly string[], streams: StreamSelection): Promise<ProcessSession>;
  attach(streams: StreamSelection): Promise<ProcessSession>;
  /** Whether the container's own process has a terminal. */
  hasTerminal(): Promise<boolean>;
  /** Connects to a port of the pod. */
  dial(port: number, signal: AbortSignal): Promise<PodConnection>;
}

/** Through the local API of the kubelet that runs the pod. */
function apiStreams(socketPath: string, { metadata, spec }: Pod, container: string): ContainerStreams {
  const { namespace = "default", name = "" } = metadata;
  const pod = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const open = (subresource: string, protocol: string, query: [string, string][]) =>
    ApiWebSocket.open(socketPath, `${pod}/${subresource}?${new URLSearchParams(query)}`, protocol);
  const flagsOf = (streams: StreamSelection) => [
    ...Object.entries(streams).map(([name, isOn]): [string, string] => [name, String(isOn)]),
    ["container", container] as [string, string],
  ];
  return {
    exec: async (argv, streams) => {
      const command = argv.map((word): [string, string] => ["command", word]);
      return toSession(await open("exec", COMMAND_PROTOCOL, [...flagsOf(streams), ...command]));
    },
    attach: async (streams) => toSession(await open("attach", COMMAND_PROTOCOL, flagsOf(streams))),
    hasTerminal: async () => findContainer(spec, container)?.tty ?? false,
    dial: async (port, signal) => {
      const socket = await open("portforward", PORT_PROTOCOL, [["ports", String(port)]]);
      signal.addEventListener("abort", () => socket.close(), { once: true });
      return {
        chunks: () => portChunks(socket),
        write: (data) => socket.send(CHANNEL.stdin, data),
        close: () => socket.close(),
      };
    },
  };
}

const COMMAND_PROTOCOL = "v5.channel.k8s.io";
const PORT_PROTOCOL = "v4.channel.k8s.io";

function toSession(socket: ApiWebSocket): ProcessSession {
  let end: string | undefined;
  async function* output(): AsyncGenerator<{ stream: "stdout" | "stderr"; data: Uint8Array }> {
    for await (const { channel, data } of socket.messages()) {
      if (channel === CHANNEL.error) end = Buffer.from(data).toString("utf8");
      else if (data.length > 0) yield { stream: channel === CHANNEL.stderr ? "stderr" : "stdout", data };
    }
  }
  return {
    output: output(),
    write: (data) => socket.send(CHANNEL.stdin, data),
    endInput: () => void socket.send(CHANNEL.close, Uint8Array.of(CHANNEL.stdin)),
    resize: ({ width, height }) =>
      socket.send(CHANNEL.resize, Buffer.from(JSON.stringify({ Width: width, Height: height }))),
    exitCode: async () => parseExit(end),
    close: async () => socket.close(),
  };
}

/**
 * The exit code of the Status that ends a command.
 * @throws CommandError when the command did not run
 */
export function parseExit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const { status, reason, message, details } = JSON.parse(text) as {
    status?: string;
    reason?: string;
    message?: string;
    details?: { causes?: { reason?: string; message?: string }[] };
  };
  if (status === "Success") return 0;
  const code = details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  if (reason === "NonZeroExitCode" && code !== undefined) return Number(code);
  throw new CommandError(message ?? "the command failed");
}

/** Each channel begins with the number of the port. */
async function* portChunks(socket: ApiWebSocket): AsyncGenerator<Uint8Array> {
  const begun = new Set<number>();
  for await (const { channel, data } of socket.messages()) {
    const isFirst = !begun.has(channel);
    begun.add(channel);
    const rest = isFirst ? data.subarray(2) : data;
    if (rest.length === 0) continue;
    if (channel === 1) throw new Error(Buffer.from(rest).toString("utf8"));
    yield rest;
  }
}

/** Through the engine, while no kubelet answers. */
const engineStreams = (engine: DockerHost, id: string, podIp: string | undefined): ContainerStreams => ({
  exec: (argv, streams) => engine.containers.exec(id, argv, streams),
  attach: (streams) => engine.containers.attach(id, streams),
  hasTerminal: () => engine.containers.hasTerminal(id),
  dial: async (port, signal) => {
    const address = await engine.podAddressOf(id);
    return dialPod({ ...address, ip: podIp ?? address.ip }, port, signal);
  },
});

/** A running container of the engine. */
export interface ChosenContainer {
  pod: Pod;
  containerName: string;
  streams: ContainerStreams;
  /** The workload or Service that the pod was chosen by. */
  object: ApiObject | undefined;
  /** Which pod and container were chosen where the command line names none. */
  note: string;
}

/**
 * The running container that the arguments mean: over the local API of the kubelet where this user may use it, which logs
 * who runs commands, else over the engine.
 * @throws CommandError, UsageError
 */
export async function chooseRunningContainer(request: CommandRequest, written: string): Promise<ChosenContainer> {
  const { pods, instance } = await readKnownPods(request, false);
  const { pod, object, note } = await choosePod(request, pods, written);
  const chosen = chooseContainers(pod, request.value("container"), false);
  if ("problem" in chosen) throw new CommandError(chosen.problem);
  const [containerName = ""] = chosen.names;
  const status = allStatusesOf(pod.status).find(({ name }) => name === containerName);
  const containerId = status?.state.running && status.containerID?.replace(/^docker:\/\//, "");
  if (!containerId) {
    const { waiting, terminated } = status?.state ?? {};
    const why = waiting?.reason ?? (terminated ? `it exited with code ${terminated.exitCode}` : "it has not started");
    throw new CommandError(`container "${containerName}" of pod "${pod.metadata.name}" does not run: ${why}`);
  }
  const socketPath = instance && !instance.isSilent ? apiSocketOf(instance.rootDir) : undefined;
  const streams =
    socketPath !== undefined && localInstances.mayUse(socketPath)
      ? apiStreams(socketPath, pod, containerName)
      : engineStreams(engineOf(request, instance?.dockerEndpoint), containerId, pod.status?.podIP);
  const notes = [note, chosen.note].filter((text) => text !== undefined);
  return { pod, containerName, streams, object, note: notes.join("\n") };
}
