import { isIP } from "node:net";
import * as v from "valibot";

const IndexSchema = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Results of 0.3.0 to 1.0.0 and, in `ip4` and `ip6`, of earlier versions. */
const ResultSchema = v.looseObject({
  cniVersion: v.optional(v.string()),
  interfaces: v.optional(v.nullable(v.array(v.looseObject({ sandbox: v.optional(v.string()) })))),
  ips: v.optional(v.nullable(v.array(v.looseObject({ address: v.string(), interface: v.optional(IndexSchema) })))),
  ip4: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
  ip6: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
});

/** The output of a plugin to ADD. The next plugins, CHECK and DEL receive it unchanged. */
export type CniResult = v.InferOutput<typeof ResultSchema>;

const ErrorSchema = v.object({
  code: v.optional(v.number()),
  msg: v.optional(v.string(), ""),
  details: v.optional(v.string(), ""),
});

/** @throws Error when the text is not a result */
export function parseCniResult(text: string): CniResult {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error("its output is not JSON");
  }
  const parsed = v.safeParse(ResultSchema, data);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw new Error(`its output is not a result: ${v.getDotPath(issue) ?? "the whole"}: ${issue.message}`);
}

/** Addresses of the pod, IPv4 first; those of interfaces on the host are left out. */
export function toPodIps({ interfaces, ips, ip4, ip6 }: CniResult): string[] {
  const ofPod = (ips ?? []).filter((ip) => {
    const owner = ip.interface === undefined ? undefined : interfaces?.[ip.interface];
    return owner === undefined || (owner.sandbox ?? "") !== "";
  });
  const addresses = [...ofPod.map(({ address }) => address), ip4?.ip ?? "", ip6?.ip ?? ""]
    .map((address) => address.split("/", 1)[0]!)
    .filter((address) => isIP(address) !== 0);
  return addresses.toSorted((a, b) => isIP(a) - isIP(b));
}

/**
 * Whether a failed CHECK is a defect of the plugin: portmap (1.1.1) expects its IPv6 rules wherever ip6tables works, but
 * makes none for a pod without an IPv6 address.
 */
export function isFalseAlarm(problem: string, result: CniResult): boolean {
  return problem.includes("could not check ipv6 dnat") && !toPodIps(result).some((address) => isIP(address) === 6);
}

/** The reason of a plugin's failure: its error object, or its output. */
export function describePluginFailure(outcome: { exitCode: number; stdout: string; stderr: string }): string {
  const parsed = v.safeParse(ErrorSchema, parseJson(outcome.stdout));
  if (parsed.success && parsed.output.msg !== "") {
    const { msg, details } = parsed.output;
    return details === "" ? msg : `${msg}; ${details}`;
  }
  const output = (outcome.stderr.trim() || outcome.stdout.trim()).slice(0, 1000);
  return output === "" ? `exit code ${outcome.exitCode}` : output;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
