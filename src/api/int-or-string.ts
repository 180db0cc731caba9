/** A port or an amount that is either a number or a name (or percentage). Source: apimachinery `intstr.IntOrString`. */
export type IntOrString = number | string;

/**
 * The port number behind a probe's or hook's `port`: the number itself, or the container port of that name.
 * @returns undefined when no port of that name exists.
 */
export function resolvePort(
  port: IntOrString,
  ports: readonly { name?: string | undefined; containerPort: number }[],
): number | undefined {
  if (typeof port === "number") return port;
  return ports.find((candidate) => candidate.name === port)?.containerPort;
}
