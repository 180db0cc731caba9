/**
 * Provides images without needing a registry.
 *
 *   node scripts/images.mjs             what the examples use
 *   node scripts/images.mjs --test      what the tests use as well
 *   node scripts/images.mjs busybox:test nginx:1.22     just these
 *
 * The engine is DOCKER_HOST's, else the one on /var/run/docker.sock.
 */
import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";
import { askEngine, callEngine, engineMessage, parseEndpoint } from "./engine-api.mjs";
import { EXAMPLE_IMAGES, TEST_IMAGES } from "./image-recipes.mjs";
import { CannotContinue, runMain, step } from "./say.mjs";
import { toTar } from "./tar.mjs";

/** A registry that is silent for this time counts as unreachable. */
const PULL_SILENCE_MS = 15_000;

const sha256 = (data) => createHash("sha256").update(data).digest("hex");

async function findImage(endpoint, name) {
  const { status, text } = await callEngine(endpoint, "GET", `/images/${name}/json`);
  if (status === 404) return undefined;
  if (status !== 200) throw new Error(`Docker GET /images/${name}/json answered ${status}: ${engineMessage(text)}`);
  return JSON.parse(text);
}

/** @returns {Promise<boolean>} false when no registry has it */
async function pull(endpoint, name) {
  const [repository, tag] = name.split(":");
  const path = `/images/create?fromImage=${encodeURIComponent(repository)}&tag=${encodeURIComponent(tag)}`;
  try {
    const { status, text } = await callEngine(endpoint, "POST", path, { timeoutMs: PULL_SILENCE_MS });
    // Errors after the first byte come inside a successful answer.
    return status === 200 && !text.includes('"errorDetail"');
  } catch (error) {
    if (error.code === "ETIMEDOUT") return false;
    throw error;
  }
}

/** Input of `docker load`: one layer, one configuration. The image's id is the digest of that configuration. */
function toImage(name, { entries, config }) {
  const layer = toTar(entries);
  const imageJson = JSON.stringify({
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config,
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "kubelet-ts scripts/images.mjs" }],
  });
  const id = sha256(imageJson);
  const manifest = [{ Config: `${id}.json`, RepoTags: [name], Layers: ["layer.tar"] }];
  const archive = toTar([
    { path: "layer.tar", data: layer },
    { path: `${id}.json`, data: imageJson },
    { path: "manifest.json", data: JSON.stringify(manifest) },
  ]);
  return { id: `sha256:${id}`, layerId: `sha256:${sha256(layer)}`, archive };
}

async function load(endpoint, name, archive) {
  const { status, text } = await callEngine(endpoint, "POST", "/images/load?quiet=1", { tar: archive });
  if (status !== 200 || text.includes('"errorDetail"')) {
    throw new Error(`Cannot load the image "${name}": Docker answered ${status}: ${engineMessage(text)}`);
  }
}

/** @returns {Promise<"present" | "pulled" | "built">} */
async function ensureImage(endpoint, recipe) {
  const found = await findImage(endpoint, recipe.name);
  if (recipe.pullable) {
    if (found) return "present";
    if (await pull(endpoint, recipe.name)) return "pulled";
  }
  const content = await recipe.make();
  const image = toImage(recipe.name, content);
  // The containerd image store has other ids: there the layers are compared.
  if (found && (found.Id === image.id || isSame(found, image, content.config))) return "present";
  await load(endpoint, recipe.name, image.archive);
  return "built";
}

const isSame = (found, image, config) =>
  found.RootFS?.Layers?.[0] === image.layerId &&
  Object.entries(config).every(([key, value]) => JSON.stringify(found.Config?.[key]) === JSON.stringify(value));

/**
 * Provides each image that is missing: pulled if a registry answers quickly, else built from Debian's packages. Prints
 * one line for each kind.
 * @param {import("./engine-api.mjs").Endpoint} endpoint
 * @param {readonly import("./image-recipes.mjs").Recipe[]} recipes
 */
export async function ensureImages(endpoint, recipes) {
  const outcome = { present: [], pulled: [], built: [] };
  for (const recipe of recipes) outcome[await ensureImage(endpoint, recipe)].push(recipe.name);
  const how = {
    present: "there already",
    pulled: "pulled",
    built: "built here from Debian's packages, without a registry",
  };
  for (const [kind, names] of Object.entries(outcome)) {
    if (names.length > 0) step("images", `${names.join(", ")}: ${how[kind]}`);
  }
}

async function main() {
  const args = process.argv.slice(2);
  const known = [...EXAMPLE_IMAGES, ...TEST_IMAGES];
  const named = args.filter((arg) => arg !== "--test");
  const unknown = named.find((name) => !known.some((recipe) => recipe.name === name));
  if (unknown !== undefined) {
    throw new CannotContinue(`No recipe for the image "${unknown}".`, [
      `Known: ${known.map((recipe) => recipe.name).join(", ")}`,
    ]);
  }
  const wanted = args.includes("--test") ? known : EXAMPLE_IMAGES;
  const endpoint = parseEndpoint();
  await askEngine(endpoint, "GET", "/version");
  await ensureImages(endpoint, named.length > 0 ? known.filter((recipe) => named.includes(recipe.name)) : wanted);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await runMain(main);
