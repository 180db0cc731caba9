import { render } from "preact";
import { formatAge, formatBytes, formatCores, shortSource } from "./format.ts";
import { plainText } from "./log-text.ts";
import { statusTone } from "./parts.tsx";
import { podAddress } from "./router.ts";
import { SPARK_HEIGHT, SPARK_WIDTH, sparkPath } from "./spark-line.ts";
import type { Spark } from "./store.ts";
import { onVisible } from "./visibility.ts";
import type { PodRow } from "./wire.ts";

/** The part of the state that changes in every update. */
export interface Moment {
  now: number;
  sparks: ReadonlyMap<string, Spark>;
  /** Places of the values of all spark lines on their width. */
  positions: readonly number[];
}

const UsageCell = ({ title, name, label }: { title: string; name: string; label: string }) => (
  <td data-title={title} class={name}>
    <div class="usage">
      <span class="value">-</span>
      <svg
        class="spark"
        viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`}
        role="img"
        aria-label={label}
        preserveAspectRatio="none"
      >
        <path />
      </svg>
    </div>
  </td>
);

/** The cells of a row with a dash in place of each text. Rows are copies of it. */
const blank = document.createElement("tr");
render(
  <>
    <th scope="row" data-title="Pod">
      <a href="#/">
        <bdi>-</bdi>
      </a>
      <span class="namespace">
        <bdi>-</bdi>
        <span class="owner">
          , <bdi>-</bdi>
        </span>
      </span>
    </th>
    <td data-title="Status">
      <span class="badge">
        <bdi>-</bdi>
      </span>
      <div class="why">
        <bdi>-</bdi>
      </div>
      <div class="why notice">
        <bdi>-</bdi>
      </div>
    </td>
    <td data-title="Ready" class="number ready">
      -
    </td>
    <td data-title="Restarts" class="number restarts">
      <span>-</span>
      <span class="ago">
        {" ("}
        <time>-</time>
        {" ago)"}
      </span>
    </td>
    <td data-title="Age" class="number age">
      <time>-</time>
    </td>
    <UsageCell title="CPU cores" name="cpu" label="CPU of the last ten minutes" />
    <UsageCell title="Memory" name="memory" label="Memory of the last ten minutes" />
    <td data-title="Source" class="source">
      <bdi>-</bdi>
    </td>
  </>,
  blank,
);

/** The cells of a row in the document. */
export interface PodRowView {
  show(pod: PodRow, moment: Moment): void;
  end(): void;
}

/**
 * Fills a row with its cells. They are written directly, not through Preact: a change of all rows would make thousands of
 * virtual nodes for a few hundred texts. Usage and ages are written only while the row is on the screen.
 */
export function openPodRow(row: HTMLTableRowElement): PodRowView {
  row.replaceChildren(...blank.cloneNode(true).childNodes);
  const find = <T extends Element = HTMLElement>(selector: string): T => {
    const found = row.querySelector<T>(selector);
    if (!found) throw new Error(`a row of a pod has no ${selector}`);
    return found;
  };
  const link = find<HTMLAnchorElement>("a");
  const name = find("a bdi");
  const namespace = find(".namespace > bdi");
  const owner = find(".owner");
  const ownerName = find(".owner bdi");
  const badge = find(".badge");
  const status = find(".badge bdi");
  const why = find(".why");
  const notice = find(".notice");
  const ready = find(".ready");
  const restarts = find(".restarts span");
  const ago = find(".ago");
  const lastRestart = find<HTMLTimeElement>(".ago time");
  const age = find<HTMLTimeElement>(".age time");
  const cpu = find(".cpu .value");
  const cpuLine = find(".cpu path");
  const memory = find(".memory .value");
  const memoryLine = find(".memory path");
  const source = find(".source");
  const sourceName = find(".source bdi");

  const showPod = (pod: PodRow) => {
    link.href = podAddress(pod);
    setText(name, pod.name);
    setText(namespace, pod.namespace);
    setText(ownerName, pod.owner);
    owner.hidden = pod.owner === "";
    badge.className = `badge ${statusTone(pod.status, pod.isReady)}`;
    setText(status, pod.status);
    showReason(why, plainText(pod.why));
    showReason(notice, plainText(pod.notice));
    setText(ready, `${pod.ready}/${pod.total}`);
    setText(restarts, String(pod.restarts));
    ago.hidden = pod.lastRestart === 0;
    showTime(lastRestart, pod.lastRestart);
    showTime(age, pod.createdAt);
    source.title = pod.source;
    setText(sourceName, plainText(shortSource(pod.source)));
  };
  const showUsage = (spark: Spark | undefined, positions: readonly number[]) => {
    setText(cpu, formatCores(spark?.cpuCores.at(-1)));
    cpuLine.setAttribute("d", sparkPath(spark?.cpuCores ?? [], positions));
    setText(memory, formatBytes(spark?.memoryBytes.at(-1)));
    memoryLine.setAttribute("d", sparkPath(spark?.memoryBytes ?? [], positions));
  };
  let isVisible = false;
  let newest: { pod: PodRow; moment: Moment } | undefined;
  let shownPod: PodRow | undefined;
  let shownSpark: Spark | undefined;
  const update = () => {
    if (!newest) return;
    const { pod, moment } = newest;
    if (pod === shownPod && !isVisible) return;
    if (pod !== shownPod) showPod(pod);
    shownPod = pod;
    setText(lastRestart, formatAge(pod.lastRestart, moment.now));
    setText(age, formatAge(pod.createdAt, moment.now));
    const spark = moment.sparks.get(pod.uid);
    if (isVisible && spark !== shownSpark) {
      showUsage(spark, moment.positions);
      shownSpark = spark;
    }
  };
  const end = onVisible(row, (isOnScreen) => {
    isVisible = isOnScreen;
    update();
  });
  return {
    show: (pod, moment) => {
      newest = { pod, moment };
      update();
    },
    end,
  };
}

/** Writes a text where it changes. */
function setText({ firstChild }: Element, text: string): void {
  if (firstChild && firstChild.nodeValue !== text) firstChild.nodeValue = text;
}

/** @param at 0 = none */
function showTime(time: HTMLTimeElement, at: number): void {
  time.hidden = at === 0;
  if (at > 0) time.dateTime = new Date(at).toISOString();
}

/** The style shows its first lines; the whole text is on hover. */
function showReason(element: HTMLElement, text: string): void {
  element.hidden = text === "";
  element.title = text;
  setText(element.firstElementChild ?? element, text);
}
