/** Several streams over one WebSocket: the first byte of each message is the number of its channel. */
export interface ChannelProtocol {
  /** undefined: the client named none. */
  name: string | undefined;
  /** Messages are text: the channel as a digit, the rest in base64. */
  isBase64: boolean;
  /** The end of a command is sent as a Status; before version 4 only a failure is sent, as plain text. */
  endsWithStatus: boolean;
  /** `255, channel` closes one channel. */
  closesChannels: boolean;
}

export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

const plain = { isBase64: false, endsWithStatus: true, closesChannels: false };

/** Source: kubelet's `remotecommand` (websocket.go, and KEP-4006 for version 5). */
const PROTOCOLS: readonly (ChannelProtocol & { name: string })[] = [
  { ...plain, name: "v5.channel.k8s.io", closesChannels: true },
  { ...plain, name: "v4.channel.k8s.io" },
  { ...plain, name: "v4.base64.channel.k8s.io", isBase64: true },
  { ...plain, name: "channel.k8s.io", endsWithStatus: false },
  { ...plain, name: "base64.channel.k8s.io", isBase64: true, endsWithStatus: false },
];

export const REMOTE_COMMAND_PROTOCOLS: readonly string[] = PROTOCOLS.map(({ name }) => name);
export const PORT_FORWARD_PROTOCOLS = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] as const;

/** Values of a header, without empty ones. */
export const listOf = (header: string | null): string[] => (header ?? "").split(/[\s,]+/).filter(Boolean);

/** The first protocol of the header that is known; without a header the oldest one. undefined: it names only others. */
export function chooseProtocol(offered: string | null, known: readonly string[]): ChannelProtocol | undefined {
  const names = listOf(offered);
  if (names.length === 0) return { ...plain, name: undefined, endsWithStatus: false };
  const name = names.find((it) => known.includes(it));
  return PROTOCOLS.find((protocol) => protocol.name === name);
}

export function encodeChannel({ isBase64 }: ChannelProtocol, channel: number, data: Uint8Array): Uint8Array {
  if (isBase64) return Buffer.from(`${channel}${Buffer.from(data).toString("base64")}`);
  const message = Buffer.allocUnsafe(data.length + 1);
  message[0] = channel;
  message.set(data, 1);
  return message;
}

/** undefined: the message names no channel. */
export function decodeChannel(
  { isBase64 }: ChannelProtocol,
  message: Uint8Array,
): { channel: number; data: Uint8Array } | undefined {
  const [first] = message;
  if (first === undefined) return undefined;
  if (!isBase64) return { channel: first, data: message.subarray(1) };
  const channel = first - 0x30;
  if (channel < 0 || channel > 9) return undefined;
  return { channel, data: Buffer.from(Buffer.from(message.subarray(1)).toString("latin1"), "base64") };
}

/** The end of a command, as version 4 sends it. Source: `metav1.Status` as kubelet's `ServeExec` fills it. */
export function exitStatus(exitCode: number | undefined): string {
  if (!exitCode) return JSON.stringify({ metadata: {}, status: "Success" });
  return JSON.stringify({
    metadata: {},
    status: "Failure",
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] },
  });
}

export function failureStatus(problem: string): string {
  return JSON.stringify({
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: ${problem}`,
    reason: "InternalError",
    details: { causes: [{ message: problem }] },
    code: 500,
  });
}
