// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Compose files
import { expect, test } from "bun:test";
import { posix } from "node:path";
import { importCompose } from "../../../src/cli/import/compose.ts";
import { ComposeFiles } from "../../../src/cli/import/compose-files.ts";
import { type ComposeError, originOf, parseCompose } from "../../../src/cli/import/compose-text.ts";

/** Texts by their paths below /srv/shop; `compose.yaml` and `over.yaml` are those of the command line. */
type Files = Readonly<Record<string, string>>;
const inputOf = (files: Files) => ({
  files: Object.keys(files)
    .filter((name) => /^(?:compose|over)\.yaml$/.test(name))
    .map((name) => `/srv/shop/${name}`),
  project: "shop",
  directory: "/srv/shop",
  environment: new Map([["OUTER", "outer"]]),
  readFile: (path: string) => files[posix.relative("/srv/shop", path)],
  findDevices: () => [],
});
const load = (files: Files) => new ComposeFiles(inputOf(files)).load();

/** Keys of a service, those of a later file, and the result. Source of the first ones: compose specification, merge. */
const MERGED = `
key1: value1, key2: value2 | key2: VALUE, key3: value3 => key1: value1, key2: VALUE, key3: value3
dns: [1.1.1.1] | dns: [8.8.8.8] => dns: [1.1.1.1, 8.8.8.8]
command: [echo, foo] | command: [echo, bar] => command: [echo, bar]
volumes: ["foo:/work"] | volumes: ["bar:/work"] => volumes: ["bar:/work"]
image: myapp, ports: ["8080:80"], environment: {FOO: BAR} | ports: !reset [], environment: {FOO: !reset null} => image: myapp, environment: {}
image: myapp, ports: ["8080:80"] | ports: !override ["8443:443"] => image: myapp, ports: ["8443:443"]
image: a | image: b, ports: !reset [] => image: b
expose: ["3000"] | expose: ["4000", "3000"] => expose: ["3000", "4000"]
environment: {A: 1, B: b} | environment: [A=2, C] => environment: {A: "2", B: b, C: null}
environment: [A=1] | environment: {A: 2} => environment: {A: 2}
labels: [a=1, b] | labels: [a=2] => labels: {a: "2", b: null}
dns: 1.1.1.1 | dns: 8.8.8.8 => dns: [1.1.1.1, 8.8.8.8]
env_file: a.env | env_file: [{path: b.env}, a.env] => env_file: [/srv/shop/a.env, {path: /srv/shop/b.env}]
tmpfs: ["/run:size=1m", /tmp] | tmpfs: "/run:size=2m" => tmpfs: ["/run:size=2m", /tmp]
ports: ["80:80", "81:81/udp"] | ports: [{target: 80, published: 80}, "81:81"] => ports: [{target: 80, published: 80}, "81:81/udp", "81:81"]
secrets: [a] | secrets: [{source: b, target: /run/secrets/a}] => secrets: [{source: b, target: /run/secrets/a}]
devices: ["/dev/a:/dev/x"] | devices: ["/dev/b:/dev/x"] => devices: ["/dev/b:/dev/x"]
depends_on: [a, b] | depends_on: {b: {condition: service_healthy}} => depends_on: {a: {condition: service_started}, b: {condition: service_healthy}}
networks: {a: {aliases: [x]}} | networks: [a, b] => networks: {a: {aliases: [x]}, b: null}
extra_hosts: {a: [10.0.0.1]} | extra_hosts: ["b:10.0.0.2", "a=10.0.0.1"] => extra_hosts: [a=10.0.0.1, "b:10.0.0.2"]
logging: {driver: a, options: {x: 1}} | logging: {driver: b} => logging: {driver: b}
logging: {driver: a, options: {x: 1}} | logging: {options: {y: 2}} => logging: {driver: a, options: {x: 1, y: 2}}
healthcheck: {test: [CMD, a], interval: 1s} | healthcheck: {test: b} => healthcheck: {test: b, interval: 1s}
ulimits: {nofile: 1} | ulimits: {nofile: {soft: 1, hard: 2}} => ulimits: {nofile: {soft: 1, hard: 2}}
security_opt: [a] | security_opt: [b] => security_opt: [a, b]
deploy: {replicas: 1, resources: {limits: {cpus: "1"}}} | deploy: {replicas: 2} => deploy: {replicas: 2, resources: {limits: {cpus: "1"}}}
image: a, tty: true | tty: null => image: a, tty: null
constructor: a, toString: [b] | constructor: c, toString: [d] => constructor: c, toString: [b, d]`;

test.each(MERGED.trim().split("\n"))("%s", (row) => {
  const [base = "", over = "", merged = ""] = row.split(/ \| | => /).map((keys) => `services: {foo: {${keys}}}`);
  expect(load({ "compose.yaml": base, "over.yaml": over })).toEqual(parseCompose(merged) as never);
  // A service that extends another one is merged by the same rules.
  const extended = `${base.slice(0, -1)}, ${over.slice(11, -2).replace("foo: {", "bar: {extends: foo, ")}}}`;
  const { services } = load({ "compose.yaml": extended }) as { services: Record<string, never> };
  expect(services.bar).toEqual((parseCompose(merged) as { services: { foo: never } }).services.foo);
});

const web = "services: {web: {image: a}}";
test.each<[what: string, files: Files, want: string]>([
  [
    "a chain of files, each with its own directory",
    {
      "compose.yaml": "services: {web: {extends: {file: base/b.yaml, service: b}, volumes: [./w:/w]}}",
      "base/b.yaml": "services: {b: {extends: {file: ../root/c.yaml, service: c}, env_file: b.env}}",
      "root/c.yaml":
        "services: {c: {extends: d, volumes: [./c:/c, v:/v, {type: bind, source: x, target: /x}]}, d: {image: $OUTER}}",
    },
    "services: {web: {image: outer, volumes: [/srv/shop/root/c:/c, v:/v, {type: bind, source: /srv/shop/root/x, target: /x}, /srv/shop/w:/w], env_file: [/srv/shop/base/b.env]}}",
  ],
  [
    "include, with variables and paths of its own directory",
    {
      "compose.yaml": `include: [db/compose.yaml]\n${web}\nvolumes: {v: null}`,
      "db/.env": "TAG=15\nOUTER=inner",
      "db/compose.yaml":
        "name: other\nservices: {db: {image: 'pg:${TAG}-${OUTER}', label_file: l}}\nvolumes: {w: null}\nsecrets: {s: {file: s.txt}}",
    },
    "services: {web: {image: a}, db: {image: pg:15-outer, label_file: [/srv/shop/db/l]}}\nvolumes: {v: null, w: null}\nsecrets: {s: {file: /srv/shop/db/s.txt}}",
  ],
  [
    "include with several files, a directory and variables",
    {
      "compose.yaml": `include: [{path: [m/a.yaml, m/b.yaml], project_directory: p, env_file: [m/1.env, m/2.env]}]\n${web}`,
      "m/1.env": "A=1\nB=1",
      "m/2.env": "B=2",
      "m/a.yaml": "services: {m: {image: '$A$B', volumes: [./d:/d], ports: ['1:1']}}",
      "m/b.yaml": "include: [../n.yaml]\nservices: {m: {ports: !reset null}}",
      "n.yaml": "services: {n: {image: n}}",
    },
    "services: {web: {image: a}, m: {image: '12', volumes: [/srv/shop/p/d:/d]}, n: {image: n}}",
  ],
  [
    "a file that is included twice, as one",
    {
      "compose.yaml": "include: [a.yaml, b.yaml]",
      "a.yaml": "include: [c.yaml]\nservices: {a: {image: a}}",
      "b.yaml": "include: [c.yaml]\nservices: {b: {image: b}}",
      "c.yaml": "services: {c: {image: c}}",
    },
    "services: {a: {image: a}, c: {image: c}, b: {image: b}}",
  ],
])("%s", (_, files, want) => {
  expect(load(files)).toEqual(parseCompose(want) as never);
});

test("each note has the file and the line of its key", () => {
  const files = {
    "compose.yaml":
      "services:\n  web:\n    cpuset: '0'\n    ports:\n      - '80:80'\n    environment:\n      A: null\n",
    "over.yaml": "services:\n  web:\n    extends: { file: x/base.yaml, service: b }\n    ports:\n      - '90'\n",
    "x/base.yaml": "services:\n  b:\n    image: a\n    isolation: x\n    environment: [B]\n",
  };
  expect(importCompose(inputOf(files)).notes.toSorted()).toEqual([
    "compose.yaml:3: services.web.cpuset: is not carried over",
    "compose.yaml:7: services.web.environment.A: has no value, neither here nor in the environment",
    "over.yaml:5: services.web.ports[1]: has no published port, which Docker would choose: set hostPort to publish it",
    "x/base.yaml:4: services.web.isolation: has an effect on Windows only",
    "x/base.yaml:5: services.web.environment.B: has no value, neither here nor in the environment",
  ]);
  expect(originOf(load(files), "services.web.tty")?.at).toBe("over.yaml:2");
});

const many = (count: number, textOf: (index: number) => string) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}.yaml`, textOf(index)]));
test.each<[files: Files, message: string, position: string]>([
  [
    {
      "compose.yaml": "services:\n  a: {extends: b}\n  b: {extends: {file: b.yaml, service: c}}",
      "b.yaml": "services: {c: {extends: {file: compose.yaml, service: a}}}",
    },
    "services extend each other in a circle: compose.yaml:2 a extends b; compose.yaml:3 b extends c; b.yaml:1 c extends a",
    "compose.yaml:2:",
  ],
  [
    { "compose.yaml": `${web}\ninclude:\n- b.yaml`, "b.yaml": "include: [compose.yaml]" },
    "files include each other in a circle: compose.yaml:3 includes /srv/shop/b.yaml; b.yaml:1 includes /srv/shop/compose.yaml",
    "compose.yaml:3:",
  ],
  [
    { "compose.yaml": `include: [b.yaml]\n${web}`, "b.yaml": "services: {web: {image: b}}" },
    "services.web is at b.yaml:1 and at compose.yaml:2: included names must differ",
    "compose.yaml:1:",
  ],
  [
    { "compose.yaml": "services: {a: {extends: b}}" },
    'a extends "b": this file has no such service',
    "compose.yaml:1:",
  ],
  [{ "compose.yaml": `${web}\ninclude: [b.yaml]` }, '"/srv/shop/b.yaml" is not there', "compose.yaml:2:"],
  [{ "compose.yaml": web, "over.yaml": "a: [1" }, "was expected", "/srv/shop/over.yaml:1:6:"],
  [{ "compose.yaml": web, "over.yaml": "[]" }, "this is not a Compose file", "/srv/shop/over.yaml:"],
  [
    {
      "compose.yaml": `services:\n${Array.from({ length: 60 }, (_, index) => `  s${index}: {extends: s${index + 1}}\n`).join("")}`,
    },
    "services extend each other over more than 50 steps: compose.yaml:2 s0 extends s1; ",
    "compose.yaml:52:",
  ],
  [
    { "compose.yaml": "include: [0.yaml]", ...many(60, (index) => `include: [${index + 1}.yaml]`) },
    "there are more than 50 files",
    "48.yaml:1:",
  ],
  [
    {
      "compose.yaml": `services:\n  b: {image: a, x-a: ${"a".repeat(500_000)}}\n${Array.from({ length: 100 }, (_, index) => `  s${index}: {extends: b}\n`).join("")}`,
    },
    "have more than 16777216 characters",
    "",
  ],
])("%# is refused", (files, message, position) => {
  let error: ComposeError | undefined;
  try {
    load(files);
  } catch (caught) {
    error = caught as ComposeError;
  }
  expect(error?.message).toContain(message);
  expect(error?.position).toBe(position);
});
