import { describe, expect, test } from "bun:test";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import { definitionName, openApiDefinitions } from "../../../src/apiserver/openapi/definitions.ts";
import descriptions from "../../../src/apiserver/openapi/descriptions.json" with { type: "json" };
import { encodeOpenApiV2, openApiV2, openApiV3 } from "../../../src/apiserver/openapi/documents.ts";
import { servedVersions } from "../../../src/apiserver/resource-definition.ts";
import { anApiServer } from "../support.ts";

const kinds = anApiServer().registry.all();

describe("OpenAPI", () => {
  test("the schemas of the manifests, with what kubectl merges by", () => {
    const definitions = openApiDefinitions(kinds, descriptions);
    const spec = definitions["io.k8s.api.core.v1.PodSpec"] as {
      properties: Record<string, object>;
      required: string[];
    };
    expect(spec.required).toEqual(["containers"]);
    expect(spec.properties.containers).toMatchObject({
      type: "array",
      items: { $ref: "io.k8s.api.core.v1.Container" },
      "x-kubernetes-patch-merge-key": "name",
      "x-kubernetes-patch-strategy": "merge",
    });
    expect(spec.properties.terminationGracePeriodSeconds).toMatchObject({ type: "integer", format: "int64" });
    expect(definitions["io.k8s.api.core.v1.Pod"]).toMatchObject({
      properties: { kind: { type: "string" }, spec: { $ref: "io.k8s.api.core.v1.PodSpec" } },
      "x-kubernetes-group-version-kind": [{ group: "", kind: "Pod", version: "v1" }],
    });
  });

  test("the strategy of a Deployment is one whose other fields go, also where it is a reference, in each form", () => {
    const served = buildRegistry().all();
    const keeps = { "x-kubernetes-patch-strategy": "retainKeys" };
    const definitions = openApiDefinitions(served, descriptions);
    const spec = definitions["io.k8s.api.apps.v1.DeploymentSpec"] as { properties: Record<string, object> };
    expect(spec.properties.strategy).toMatchObject(keeps);
    expect(JSON.stringify(openApiV3("apps", "v1", served, descriptions))).toContain(JSON.stringify(keeps).slice(1, -1));
    const bytes = Buffer.from(encodeOpenApiV2(openApiV2(served, descriptions)));
    expect(bytes.includes('"retainKeys"')).toBe(true);
  });

  test("a kind in an older version has the fields of that version", () => {
    const served = buildRegistry().all().flatMap(servedVersions);
    const definitions = openApiDefinitions(served, descriptions);
    const ofIngress = JSON.stringify(definitions["io.k8s.api.networking.v1beta1.Ingress"]);
    expect(["servicePort", "serviceName", "defaultBackend"].filter((it) => ofIngress.includes(it))).toHaveLength(2);
    expect(definitions["io.k8s.api.batch.v1beta1.CronJob"]).toMatchObject({
      properties: { spec: { properties: { schedule: { type: "string" } } } },
      "x-kubernetes-group-version-kind": [{ group: "batch", kind: "CronJob", version: "v1beta1" }],
    });
  });

  test("every reference leads somewhere", () => {
    const document = openApiV3("", "v1", kinds, descriptions) as { components: { schemas: Record<string, object> } };
    const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
      (it) => it[1] ?? "",
    );
    expect(references.length).toBeGreaterThan(50);
    expect(references.filter((name) => !(name in document.components.schemas))).toEqual([]);
  });

  test("patches of a kind name dryRun and fieldValidation, by which kubectl knows that they are served", () => {
    const document = openApiV3("", "v1", kinds, descriptions) as {
      paths: Record<string, { patch?: { parameters: { name: string }[] } }>;
    };
    const names = document.paths["/api/v1/namespaces/{namespace}/pods/{name}"]?.patch?.parameters.map(
      ({ name }) => name,
    );
    expect(names).toEqual(expect.arrayContaining(["dryRun", "fieldValidation"]));
  });

  test("in protobuf it begins as gnostic's Document does", () => {
    const bytes = Buffer.from(encodeOpenApiV2(openApiV2(kinds, descriptions)));
    expect(bytes.subarray(0, 5).toString("latin1")).toBe("\x0a\x032.0");
    expect(bytes.includes("io.k8s.api.core.v1.PodSpec")).toBe(true);
  });
});

test("fields and types have their descriptions, also where a field refers to a type", () => {
  const { definitions } = openApiV2(kinds, descriptions);
  const container = definitions["io.k8s.api.core.v1.Container"] as {
    properties: Record<string, { description?: string; $ref?: string }>;
  };
  expect(container.properties.image?.description).toBe("Docker image name.");
  expect(container.properties.livenessProbe).toMatchObject({
    $ref: "#/definitions/io.k8s.api.core.v1.Probe",
    description: "Periodic probe of container liveness.",
  });
  const texts = Object.values<Record<string, string>>(descriptions).flatMap((it) => Object.values(it));
  expect(texts.filter((text) => text === "" || text.includes("https:"))).toEqual([]);
});

/** Fields that may have any member, or whose members nothing reads. */
const OPEN = new RegExp(
  "^(ControllerRevision data|Deployment spec.rollbackTo|EndpointSlice endpoints.(targetRef|hints)|IngressClass spec.parameters|" +
    "Job spec.successPolicy|PersistentVolume spec\\.\\w+)$",
);

test("kubectl explain has texts and types of the first two levels of each kind", () => {
  const served = buildRegistry().all().flatMap(servedVersions);
  const documents = new Map<string, OpenApi>();
  const missing = served.flatMap((kind) => {
    const { group, version } = kind;
    const make = () => openApiV3(group, version, served, descriptions) as OpenApi;
    const { components } = documents.getOrInsertComputed(`${group}/${version}`, make);
    const resolve = (schema: Schema): Schema => {
      const [{ $ref = "" } = {}] = schema.allOf ?? [];
      return components.schemas[$ref.replace("#/components/schemas/", "")] ?? schema;
    };
    const gaps = (schema: Schema, path: string, levels: number): string[] => {
      const own = resolve(schema);
      return Object.entries(resolve(own.items ?? own).properties ?? {}).flatMap(([name, member]) => {
        const type = resolve(member);
        const isOpen = type.type === "object" && !type.properties && !type.additionalProperties;
        const inner = levels > 1 && name !== "metadata" ? gaps(member, `${path}${name}.`, levels - 1) : [];
        return [...((member.description ?? type.description) && !isOpen ? [] : [path + name]), ...inner];
      });
    };
    return gaps(components.schemas[definitionName(kind)]!, `${kind.kind} `, 2);
  });
  // To repair: bun scripts/generate-descriptions.ts PATH/TO/api/openapi-spec/swagger.json (of Kubernetes' source)
  expect([...new Set(missing)].filter((it) => !OPEN.test(it))).toEqual([]);
});

interface Schema {
  type?: string;
  description?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: object;
  allOf?: { $ref: string }[];
}
type OpenApi = { components: { schemas: Record<string, Schema> } };
