import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { int32, intOrString, raw, text, textList, textPointer } from "./scalar.ts";

/** Source: networking/v1 `IngressBackend`. */
const IngressBackendSchema = v.object({
  service: v.optional(
    v.object({ name: text, port: v.optional(v.object({ name: v.optional(text), number: v.optional(int32) })) }),
  ),
  resource: v.optional(raw),
});
export type IngressBackend = v.InferOutput<typeof IngressBackendSchema>;

const IngressPathSchema = v.object({
  path: v.optional(text),
  pathType: v.optional(textPointer),
  backend: IngressBackendSchema,
});

const ingressOf = <Backend extends v.ObjectEntries, Path extends v.GenericSchema>(backend: Backend, path: Path) =>
  v.object({
    metadata: ObjectMetaSchema,
    spec: v.object({
      ingressClassName: v.optional(textPointer),
      ...backend,
      tls: v.optional(v.array(v.object({ hosts: v.optional(textList), secretName: v.optional(text) }))),
      rules: v.optional(
        v.array(
          v.object({
            host: v.optional(text),
            http: v.optional(v.object({ paths: v.optional(v.array(path)) })),
          }),
        ),
      ),
    }),
    status: v.optional(raw),
  });

/** Source: networking/v1 `Ingress`. */
export const IngressSchema = ingressOf({ defaultBackend: v.optional(IngressBackendSchema) }, IngressPathSchema);
export type Ingress = v.InferOutput<typeof IngressSchema>;

const oldBackend = v.object({
  serviceName: v.optional(text),
  servicePort: v.optional(intOrString),
  resource: v.optional(raw),
});

/** Source: networking/v1beta1 `Ingress`. */
export const ingressV1beta1 = ingressOf(
  { backend: v.optional(oldBackend) },
  v.object({ path: v.optional(text), pathType: v.optional(textPointer), backend: oldBackend }),
);

/** Source: networking/v1 `IngressClass`. */
export const IngressClassSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({ controller: v.optional(text), parameters: v.optional(raw) }),
});
export type IngressClass = v.InferOutput<typeof IngressClassSchema>;
