import { BUN_RUNTIMES, BUN_VERSION, type BunRuntime } from "./bun-runtimes.ts";

/** The part of package-lock.json that is read. */
export interface PackageLock {
  name: string;
  version: string;
  packages: Readonly<
    Record<string, { version?: string; integrity?: string; license?: string; dev?: boolean; devOptional?: boolean }>
  >;
}

/**
 * A bill of materials (CycloneDX 1.5, JSON): every package of package-lock.json that may be part of the executable, and the
 * Bun runtimes. The same for the same lock file.
 * @param commit of the source; undefined outside of a git repository
 */
export function toSbom({ name, version, packages }: PackageLock, commit: string | undefined): object {
  const libraries = Object.entries(packages)
    .filter(
      ([path, entry]) =>
        path !== "" && entry.dev !== true && entry.devOptional !== true && entry.integrity !== undefined,
    )
    .map(([path, { version: packageVersion = "", integrity = "", license }]) =>
      toComponent("library", path.slice(path.lastIndexOf("node_modules/") + 13), packageVersion, integrity, license),
    );
  const runtimes = Object.values<BunRuntime>(BUN_RUNTIMES).map(({ package: runtime, integrity }) =>
    toComponent("platform", runtime, BUN_VERSION, integrity, "MIT"),
  );
  const byRef = new Map([...libraries, ...runtimes].map((component) => [component["bom-ref"], component]));
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": `${name}@${version}`,
        name,
        version,
        licenses: [{ license: { id: packages[""]?.license ?? "Apache-2.0" } }],
        ...(commit !== undefined && { properties: [{ name: "git:commit", value: commit }] }),
      },
    },
    components: [...byRef.values()].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1)),
    dependencies: [{ ref: `${name}@${version}`, dependsOn: [...byRef.keys()].sort() }],
  };
}

function toComponent(type: "library" | "platform", name: string, version: string, integrity: string, license?: string) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [algorithm = "", digest = ""] = integrity.split("-", 2);
  const hash = { alg: `SHA-${algorithm.slice(3)}`, content: Buffer.from(digest, "base64").toString("hex") };
  // An expression such as "(MIT OR Apache-2.0)" is not a license id.
  const licenses =
    license === undefined ? [] : [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }];
  return { type, "bom-ref": purl, name, version, purl, hashes: [hash], ...(licenses.length > 0 && { licenses }) };
}
