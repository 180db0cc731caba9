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
