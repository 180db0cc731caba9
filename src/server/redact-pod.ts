import type { Container, Pod, Probe } from "../base/api/pod.ts";
import { mapContainers } from "../base/model/pod.ts";

/** Stands where a value was that the unauthenticated port does not show. */
const REDACTED = "<redacted>";

/**
 * The pod as the unauthenticated port may show it: without literal environment values, without the values of
 * credential headers, and without the annotation kubectl keeps a copy of the whole manifest in. Names, references and
 * everything else stay. Values that come from Secrets are never in a pod object.
 */
export function redactPod(pod: Pod): Pod {
  const { spec, metadata } = pod;
  return {
    ...pod,
    metadata: metadata.annotations ? { ...metadata, annotations: redactAnnotations(metadata.annotations) } : metadata,
    spec: {
      ...mapContainers(spec, redactContainer),
      ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(redactContainer) }),
    },
  };
}

const MANIFEST_COPY = "kubectl.kubernetes.io/last-applied-configuration";

function redactAnnotations(annotations: Record<string, string>): Record<string, string> {
  const names = Object.keys(annotations).filter((name) => name.endsWith(MANIFEST_COPY));
  if (names.length === 0) return annotations;
  return { ...annotations, ...Object.fromEntries(names.map((name) => [name, REDACTED])) };
}

function redactContainer<C extends Container>(container: C): C {
  const redacted = { ...container };
  if (container.env) {
    redacted.env = container.env.map((variable) => (variable.value ? { ...variable, value: REDACTED } : variable));
  }
  redactHeaders(redacted, ["livenessProbe", "readinessProbe", "startupProbe"]);
  if (container.lifecycle) {
    redacted.lifecycle = { ...container.lifecycle };
    redactHeaders(redacted.lifecycle, ["postStart", "preStop"]);
  }
  return redacted;
}

/** Replaces the handlers of these names. */
function redactHeaders<K extends string>(
  owner: Partial<Record<K, Pick<Probe, "httpGet"> | undefined>>,
  names: readonly K[],
): void {
  for (const name of names) {
    const handler = owner[name];
    if (!handler?.httpGet?.httpHeaders) continue;
    const httpHeaders = handler.httpGet.httpHeaders.map((header) =>
      /auth|cookie|token|secret|key|password/i.test(header.name) ? { ...header, value: REDACTED } : header,
    );
    owner[name] = { ...handler, httpGet: { ...handler.httpGet, httpHeaders } };
  }
}
