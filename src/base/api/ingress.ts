import { isIP } from "node:net";
import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";

/** Source: networking/v1 `IngressBackend`. */
const IngressBackendSchema = v.object({
  service: v.optional(
    v.object({
      name: go.text,
      port: v.optional(v.object({ name: v.optional(go.text), number: v.optional(go.int32) })),
    }),
  ),
  resource: v.optional(go.raw),
});
export type IngressBackend = v.InferOutput<typeof IngressBackendSchema>;

const IngressPathSchema = v.object({
  path: v.optional(go.text),
  pathType: v.optional(go.textPointer),
  backend: IngressBackendSchema,
});

const ingressOf = <Backend extends v.ObjectEntries, Path extends v.GenericSchema>(backend: Backend, path: Path) =>
  v.object({
    metadata: ObjectMetaSchema,
    spec: v.object({
      ingressClassName: v.optional(go.textPointer),
      ...backend,
      tls: v.optional(v.array(v.object({ hosts: v.optional(go.textList), secretName: v.optional(go.text) }))),
      rules: v.optional(
        v.array(
          v.object({
            host: v.optional(go.text),
            http: v.optional(v.object({ paths: v.optional(v.array(path)) })),
          }),
        ),
      ),
    }),
    status: v.optional(go.raw),
  });

/** Source: networking/v1 `Ingress`. */
export const IngressSchema = ingressOf({ defaultBackend: v.optional(IngressBackendSchema) }, IngressPathSchema);
export type Ingress = v.InferOutput<typeof IngressSchema>;

const oldBackend = v.object({
  serviceName: v.optional(go.text),
  servicePort: v.optional(go.intOrString),
  resource: v.optional(go.raw),
});

/** Source: networking/v1beta1 `Ingress`. */
export const ingressV1beta1 = ingressOf(
  { backend: v.optional(oldBackend) },
  v.object({ path: v.optional(go.text), pathType: v.optional(go.textPointer), backend: oldBackend }),
);

/** Source: networking/v1 `IngressClass`. */
export const IngressClassSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({ controller: v.optional(go.text), parameters: v.optional(go.raw) }),
});
export type IngressClass = v.InferOutput<typeof IngressClassSchema>;

/** Prefix of the annotations of an Ingress that its server follows. Source: ingress-nginx. */
const INGRESS_ANNOTATION_PREFIX = "nginx.ingress.kubernetes.io/";
/** The class of an Ingress before there was `spec.ingressClassName`. */
export const INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class";

const PROTOCOLS = ["HTTP", "HTTPS", "GRPC", "GRPCS"] as const;

/** Meaning of the annotations of an Ingress, with the defaults of ingress-nginx. */
export interface IngressSettings {
  /** Largest body of a request, as nginx writes it; 0: no limit. */
  bodySize: string;
  connectTimeoutSeconds: number;
  readTimeoutSeconds: number;
  sendTimeoutSeconds: number;
  /** HTTP is redirected to HTTPS where the host has a certificate. */
  sslRedirect: boolean;
  /** Also where it has none. */
  forceSslRedirect: boolean;
  protocol: (typeof PROTOCOLS)[number];
  /** Paths are regular expressions. */
  useRegex: boolean;
  /** Path for the backend, with `$1` to `$9` for the groups of the path. */
  rewriteTarget?: string;
  isBasicAuth: boolean;
  /** Name of a Secret in the namespace of the Ingress, or `namespace/name`. */
  authSecret?: string;
  authRealm: string;
  /** Addresses and ranges of clients; empty for all. */
  allowedSources: readonly string[];
  /** URL of a redirect (301); may have `$request_uri`, `$host` and `$scheme`. */
  permanentRedirect?: string;
  /** Path to which `/` is redirected. */
  appRoot?: string;
  /** Requests of a client go to one pod, by a cookie. */
  hasCookieAffinity: boolean;
  affinityCookie: string;
}

const DEFAULTS: IngressSettings = {
  bodySize: "1m",
  connectTimeoutSeconds: 5,
  readTimeoutSeconds: 60,
  sendTimeoutSeconds: 60,
  sslRedirect: true,
  forceSslRedirect: false,
  protocol: "HTTP",
  useRegex: false,
  isBasicAuth: false,
  authRealm: "Authentication Required",
  allowedSources: [],
  hasCookieAffinity: false,
  affinityCookie: "INGRESSCOOKIE",
};

/** @returns what it means; a string: what the value must be */
type Parse = (value: string) => Partial<IngressSettings> | string;

function flag(field: "sslRedirect" | "forceSslRedirect" | "useRegex"): Parse {
  return (value) => {
    const lower = value.toLowerCase();
    return lower === "true" || lower === "false" ? { [field]: lower === "true" } : "must be true or false";
  };
}

/** A day: connections that are idle for longer are not kept by anything on the way either. */
const MAX_SECONDS = 86_400;

function seconds(field: "connectTimeoutSeconds" | "readTimeoutSeconds" | "sendTimeoutSeconds"): Parse {
  return (value) => {
    const number = Number(/^(\d{1,5})s?$/.exec(value)?.[1] ?? Number.NaN);
    return number >= 1 && number <= MAX_SECONDS
      ? { [field]: number }
      : `must be whole seconds from 1 to ${MAX_SECONDS}`;
  };
}

/** Printable ASCII without what could end a word of nginx or begin a variable. */
const SAFE = String.raw`[\w\-.~:/?#[\]@!&()*+,=%]`;
const PATH = new RegExp(`^/${SAFE}{0,1000}$`);
const REWRITE_TARGET = new RegExp(String.raw`^/(?:${SAFE}|\$[1-9]){0,1000}$`);
const REDIRECT = new RegExp(String.raw`^https?://(?:${SAFE}|\$(?:request_uri|host|scheme)(?!\w)){1,1000}$`);

const isSource = (text: string): boolean => {
  const [, address = "", length] = /^([\da-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(length ?? 0) <= (family === 4 ? 32 : 128);
};

const parseSources: Parse = (value) => {
  const allowedSources = value.split(",").map((text) => text.trim());
  return allowedSources.every(isSource) ? { allowedSources } : "must be addresses or ranges, separated by commas";
};

/** Annotations that are followed, without their prefix. */
const PARSERS = {
  "proxy-body-size": (value) =>
    /^\d{1,9}[kKmMgG]?$/.test(value)
      ? { bodySize: value }
      : "must be a number of bytes, with k, m or g for larger ones (8m)",
  "proxy-connect-timeout": seconds("connectTimeoutSeconds"),
  "proxy-read-timeout": seconds("readTimeoutSeconds"),
  "proxy-send-timeout": seconds("sendTimeoutSeconds"),
  "ssl-redirect": flag("sslRedirect"),
  "force-ssl-redirect": flag("forceSslRedirect"),
  "use-regex": flag("useRegex"),
  "rewrite-target": (value) =>
    REWRITE_TARGET.test(value) ? { rewriteTarget: value } : "must be a path, with $1 to $9 for groups of the path",
  "backend-protocol": (value) => {
    const protocol = PROTOCOLS.find((it) => it === value.toUpperCase());
    return protocol ? { protocol } : `must be one of ${PROTOCOLS.join(", ")}`;
  },
  "auth-type": (value) => (value === "basic" ? { isBasicAuth: true } : "must be basic"),
  "auth-secret": (value) =>
    /^[a-z0-9.-]{1,253}(\/[a-z0-9.-]{1,253})?$/.test(value) ? { authSecret: value } : "must be the name of a Secret",
  "auth-realm": (value) =>
    /^[\x20-\x7e]{1,200}$/.test(value) && !/["\\$]/.test(value)
      ? { authRealm: value }
      : "must be at most 200 printable characters other than quotes, backslash and $",
  "whitelist-source-range": parseSources,
  "allowlist-source-range": parseSources,
  "permanent-redirect": (value) =>
    REDIRECT.test(value)
      ? { permanentRedirect: value }
      : "must be a URL of http or https; of variables it may have $request_uri, $host and $scheme",
  "app-root": (value) => (PATH.test(value) ? { appRoot: value } : "must be a path"),
  affinity: (value) => (value === "cookie" ? { hasCookieAffinity: true } : "must be cookie"),
  "session-cookie-name": (value) =>
    /^[A-Za-z]\w{0,63}$/.test(value) ? { affinityCookie: value } : "must be letters, digits and underscores",
} satisfies Record<string, Parse>;
export type IngressAnnotation = keyof typeof PARSERS;

/** Annotations without which an Ingress would let in what it means to keep out, and those that are text of nginx. */
const REFUSED = new Set(
  "auth-url auth-tls-secret auth-tls-verify-client denylist-source-range satisfy"
    .split(" ")
    .concat(
      "configuration-snippet server-snippet location-snippet stream-snippet auth-snippet".split(" "),
      "modsecurity-snippet enable-modsecurity".split(" "),
    ),
);

/** An annotation with a value that is not followed. */
interface AnnotationProblem {
  /** Name of the annotation, with prefix. */
  name: string;
  message: string;
  /** The Ingress is served, as if the annotation were not there. */
  isIgnored: boolean;
}

/** Reads the annotations of an Ingress. Values are of a form that can do nothing else in a configuration of nginx. Pure. */
export function parseIngressAnnotations(annotations: Readonly<Record<string, string>> | undefined): {
  settings: IngressSettings;
  problems: AnnotationProblem[];
} {
  const settings = { ...DEFAULTS };
  const problems: AnnotationProblem[] = [];
  for (const [name, value] of Object.entries(annotations ?? {})) {
    if (!name.startsWith(INGRESS_ANNOTATION_PREFIX)) continue;
    const key = name.slice(INGRESS_ANNOTATION_PREFIX.length);
    const parse = Object.hasOwn(PARSERS, key) ? PARSERS[key as IngressAnnotation] : undefined;
    if (!parse) {
      const isIgnored = !REFUSED.has(key);
      problems.push({ name, message: isIgnored ? "has no effect" : "is not supported: remove it", isIgnored });
      continue;
    }
    const parsed = parse(value);
    if (typeof parsed === "string") problems.push({ name, message: parsed, isIgnored: false });
    else Object.assign(settings, parsed);
  }
  if (settings.isBasicAuth && settings.authSecret === undefined) {
    const name = `${INGRESS_ANNOTATION_PREFIX}auth-type`;
    problems.push({ name, message: "needs the annotation auth-secret", isIgnored: false });
  }
  return { settings, problems };
}
