// Refuses words that the project's documentation style avoids: `npm run lint` runs it after Biome.
// Usage: node scripts/lint-words.mjs [path…]
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Files and folders that are checked. */
const CHECKED = ["CONTRIBUTING.md", "README.md", "bench", "docs", "scripts", "src", "test"];

/** This list, and the user `nobody` of images. */
const EXEMPT = /\/(lint-words|image-recipes)\.mjs$|\/fixtures\//;

/** Words and phrases, each with what to write instead. */
const WORDS = [
  [/\bnobody\b/i, "no one, or name the subject"],
  [/\b(whoever|whomever)\b/i, "name the subject"],
  [/\bsomebody\b/i, "name the subject"],
  [/\banybody\b/i, "name the subject"],
  [/\banew\b/i, "again"],
  [/\bso long\b/i, "as long, or a duration"],
  [/\bbeside\b/i, "next to, in addition to, with"],
  [/\bof ours\b/i, "of kubelet-ts, or our"],
  [/\bof theirs\b/i, "their"],
  [/\bby itself\b/i, "alone, or automatically"],
  [/\bleave \S+ (away|out)\b/i, "remove"],
  [/\bcan be had\b/i, "is available"],
  [/\bfor ever\b/i, "forever, or a condition"],
  [/\bstands (here|there|in|for)\b/i, "is, occurs, represents"],
  [/\bsays so\b/i, "state the fact"],
  [/\b(taken|takes|took) back\b/i, "rolled back, undone, adopted, reclaimed"],
  [/\btold (apart|of|otherwise)\b/i, "distinguished, reported, set"],
  [/[[(](?:[MPSU]\d{2,3}[ ,–]*)+[\])]/, "a reason or a link: the list of numbers is not in the repository"],
];

/** Comments that open with a relative clause have no subject. */
const OPENINGS = /^\s*(?:\/\*\*|\/\/|\*)\s+(?:Of|By|What|Who|Whoever)\s/;

const SUFFIX = /\.(tsx?|mjs|js|md)$/;

function filesBelow(path) {
  if (!statSync(path, { throwIfNoEntry: false })) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => SUFFIX.test(name))
    .map((name) => join(path, name));
}

const given = process.argv.slice(2);
const roots = given.length > 0 ? given : CHECKED.map((path) => join(ROOT, path));
let found = 0;
for (const file of roots.flatMap(filesBelow).sort()) {
  if (EXEMPT.test(file)) continue;
  for (const [index, line] of readFileSync(file, "utf8").split("\n").entries()) {
    const place = `${relative(ROOT, file)}:${index + 1}`;
    for (const [pattern, instead] of WORDS) {
      const match = pattern.exec(line);
      if (!match) continue;
      console.error(`${place}:${match.index + 1}: "${match[0]}": write ${instead}`);
      found++;
    }
    if (!file.endsWith(".md") && OPENINGS.test(line)) {
      console.error(`${place}: a comment begins with its subject, not with a relative clause`);
      found++;
    }
  }
}
if (found > 0) {
  console.error(`${found} ${found === 1 ? "finding" : "findings"} (scripts/lint-words.mjs)`);
  process.exitCode = 1;
}
