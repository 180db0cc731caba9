import { isRecord, type Json } from "../../base/text/json.ts";
import { toSeconds } from "./compose-text.ts";
import { type ImportNotes, textOf, textsOf } from "./import-notes.ts";

/** A member unless its value is absent or empty. */
export function some(name: string, value: unknown): object {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return {};
  if (isRecord(value) && Object.keys(value).length === 0) return {};
  return { [name]: value };
}

/** @param hosts `name=address` or `name:address` */
export function toHostAliases(hosts: readonly string[], path: string, notes: ImportNotes): object[] {
  return hosts.flatMap((entry) => {
    const [, hostname = "", ip = ""] = /^([^=:]+)[=:](.*)$/.exec(entry) ?? [];
    if (/^[\d.]+$|:/.test(ip)) return [{ ip, hostnames: [hostname] }];
    notes.add(path, `${entry} is not carried over: the address must be given`);
    return [];
  });
}

/** @param options e.g. `ndots:2` */
export function toDnsConfig(
  nameservers: readonly string[],
  searches: readonly string[],
  options: readonly string[],
): object {
  const dnsConfig = {
    ...some("nameservers", nameservers),
    ...some("searches", searches),
    ...some(
      "options",
      options.map((option) => {
        const [name, value] = option.split(":");
        return { name, ...(value !== undefined && { value }) };
      }),
    ),
  };
  return { ...(nameservers.length > 0 && { dnsPolicy: "None" }), ...some("dnsConfig", dnsConfig) };
}

/**
 * A health check as a readiness probe: it only reports and does not restart the container.
 * @param check in the words of Compose: test, interval, timeout, start_period, retries
 */
export function probeOf(check: Json | undefined, path: string, notes: ImportNotes): object | undefined {
  if (!isRecord(check) || check.disable === true) return undefined;
  const test = typeof check.test === "string" ? ["CMD-SHELL", check.test] : textsOf(check.test ?? []);
  const [kind, ...words] = test;
  if (kind === undefined || kind === "NONE") return undefined;
  const command = kind === "CMD-SHELL" ? ["/bin/sh", "-c", words.join(" ")] : words;
  notes.add(path, "becomes a readinessProbe, which only reports: use a livenessProbe to restart the container");
  return {
    exec: { command },
    ...some(
      "initialDelaySeconds",
      check.start_period === undefined ? undefined : toSeconds(textOf(check.start_period) ?? ""),
    ),
    periodSeconds: toSeconds(textOf(check.interval) ?? "30s") ?? 30,
    timeoutSeconds: toSeconds(textOf(check.timeout) ?? "30s") ?? 30,
    failureThreshold: Number(textOf(check.retries) ?? 3),
  };
}

const QUALIFIED_NAME = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Kind of entry that a label of Docker becomes: an annotation if only its value has characters that labels lack. */
export function labelKind(key: string, value: string): "label" | "annotation" | undefined {
  if (!QUALIFIED_NAME.test(key)) return undefined;
  return LABEL_VALUE.test(value) ? "label" : "annotation";
}

/** Names of environment variables whose values are likely to be secret. */
const SECRET_NAME = /PASS(?:WORD|WD|PHRASE)?(?:$|_)|SECRET|TOKEN|API_?KEY|(?:^|_)KEY(?:$|_)|CREDENTIAL/i;
/** A URL with a password: `postgres://user:password@host`. */
const SECRET_VALUE = /:\/\/[^\s/:@]*:[^\s/@]+@/;

interface ImportedVariables {
  env: object[];
  /** A Secret with the values that were split off. */
  secret?: object;
}

/**
 * Variables of a container. Values that look secret are moved to a Secret.
 * @param secretName name of that Secret
 */
export function toVariables(variables: ReadonlyMap<string, string>, secretName: string): ImportedVariables {
  const stringData: Record<string, string> = {};
  const env = [...variables].map(([name, value]) => {
    const isSecret = SECRET_NAME.test(name) || SECRET_VALUE.test(value);
    if (value === "" || !isSecret || !/^[-._a-zA-Z0-9]+$/.test(name)) {
      return { name, value: value.replaceAll("$(", "$$$$(") };
    }
    stringData[name] = value;
    return { name, valueFrom: { secretKeyRef: { name: secretName, key: name } } };
  });
  if (Object.keys(stringData).length === 0) return { env };
  return { env, secret: { apiVersion: "v1", kind: "Secret", metadata: { name: secretName }, stringData } };
}
