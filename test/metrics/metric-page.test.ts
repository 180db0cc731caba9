import { expect, test } from "bun:test";
import { type LabelPieces, type OwnLabels, WITHOUT_LABELS } from "../../src/cgroups/line-table.ts";
import { MetricPage } from "../../src/metrics/metric-page.ts";
import { familyHeader, numberText } from "../../src/metrics/prometheus-text.ts";

interface Sample {
  labels: LabelPieces;
  value: number;
  own?: OwnLabels;
}

interface Family {
  name: string;
  isStamped: boolean;
  samples: Sample[];
}

const labelsOf = (pod: string): LabelPieces => ({
  head: '{container="",',
  middle: 'id="/kubepods",',
  tail: `pod="${pod}"`,
  end: "}",
});

function render(page: MetricPage, families: readonly Family[], stamp: string): string {
  page.begin(stamp, () => false);
  page.text("# before\n");
  for (const { name, isStamped, samples } of families) {
    page.family(name, "Help.", "gauge", isStamped);
    for (const { labels, value, own } of samples) page.sample(labels, value, own);
  }
  page.text("# EOF\n");
  return new TextDecoder().decode(page.end());
}

/** The same, the plain way. */
function plainly(families: readonly Family[], stamp: string): string {
  const texts = families.map(({ name, isStamped, samples }) => {
    if (samples.length === 0) return "";
    const lines = samples.map(({ labels: { head, middle, tail, end }, value, own = {} }) => {
      const labels = `${head}${own.head ?? ""}${middle}${own.middle ?? ""}${tail}${own.tail ?? ""}${end}`;
      return `${name}${labels} ${numberText(value)}${isStamped ? stamp : ""}\n`;
    });
    return familyHeader(name, "Help.", "gauge", "openmetrics") + lines.join("");
  });
  return `# before\n${texts.join("")}# EOF\n`;
}

test("labels stand where a family puts them, times behind stamped families only, empty families nowhere", () => {
  const labels = labelsOf("web");
  const page = new MetricPage("openmetrics");
  const own = { head: 'cpu="total",', tail: ',scope="all"' };
  const text = render(
    page,
    [
      { name: "a", isStamped: true, samples: [{ labels, value: 0.25, own }] },
      { name: "b", isStamped: true, samples: [] },
      { name: "c", isStamped: false, samples: [{ labels: WITHOUT_LABELS, value: Number.POSITIVE_INFINITY }] },
    ],
    " 7",
  );
  expect(text).toBe(`# before
# HELP a Help.
# TYPE a gauge
a{container="",cpu="total",id="/kubepods",pod="web",scope="all"} 0.25 7
# HELP c Help.
# TYPE c gauge
c +Inf
# EOF
`);
});

test("a page is made in the room of the one before the last, unless somebody still reads that", () => {
  const page = new MetricPage("openmetrics");
  const inUse = new Set<Uint8Array>();
  const make = (value: number) => {
    page.begin(" 1", (earlier) => inUse.has(earlier));
    page.family("a", "Help.", "gauge", true);
    page.sample(labelsOf("web"), value);
    return page.end();
  };
  const first = make(1);
  const text = new TextDecoder().decode(first);
  inUse.add(first);
  const [second, third, fourth] = [make(2), make(3), make(4)];
  expect(new TextDecoder().decode(first)).toBe(text);
  expect(third.buffer).not.toBe(first.buffer);
  expect(fourth.buffer).toBe(second.buffer);
});

test("names beyond ASCII keep their bytes", () => {
  const labels = labelsOf("жук\u{1F98A}");
  const page = new MetricPage("openmetrics");
  const families: Family[] = [{ name: "a", isStamped: true, samples: [{ labels, value: 1 }] }];
  expect(render(page, families, " 1")).toBe(plainly(families, " 1"));
  families[0]!.samples[0]!.value = 22;
  expect(render(page, families, " 2")).toBe(plainly(families, " 2"));
});

/** Repeatable: a small linear congruential generator. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])("whatever comes, goes, moves or changes: page after page is right (%d)", (seed) => {
  const random = randomOf(seed);
  const page = new MetricPage("openmetrics");
  const owns: (OwnLabels | undefined)[] = [undefined, { head: 'device="a",' }, { middle: 'interface="b",' }];
  const values = [0, 1, 10, 12.5, 1e9, 1e21, Number.NaN];
  let pods = Array.from({ length: 1 + random(150) }, (_, index) => labelsOf(`pod${index}`));
  let made = pods.length;
  const current = new Map<string, number>();
  for (let round = 0; round < 25; round++) {
    if (random(4) === 0) pods = pods.filter(() => random(10) > 0);
    if (random(4) === 0) pods = pods.toSpliced(random(pods.length + 1), 0, labelsOf(`pod${made++}`));
    if (random(8) === 0) pods = pods.toReversed();
    const families = ["a", "b", "c", "d"].map((name, index): Family => {
      const isThere = random(12) > 0;
      const samples = pods.flatMap((labels) =>
        owns.map((own, place): Sample => {
          const key = `${name}${labels.tail}${place}`;
          if (random(20) === 0 || !current.has(key)) current.set(key, values[random(values.length)]!);
          return { labels, value: current.get(key)!, ...(own && { own }) };
        }),
      );
      return { name, isStamped: index !== 2, samples: isThere ? samples : [] };
    });
    // At times another length, as when a clock is set.
    const stamp = ` ${random(10) === 0 ? round : 1_700_000_000_000 + round * 15_000}`;
    expect(render(page, families, stamp)).toBe(plainly(families, stamp));
  }
});
