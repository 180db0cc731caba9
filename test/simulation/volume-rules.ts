import { CLAIM, configText, MOUNTS, secretText, type WantedPod } from "./desired.ts";
import type { ModelContainer } from "./engine-model.ts";
import { ROOT_DIR, type World } from "./world.ts";

const MARK = "mark";
/** A text of a file is read at once, and one of a URL after 5 minutes. */
const VALUES_KNOWN_MS = 10 * 60_000;

interface Mounted {
  source: string;
  target: string;
}

/** Rules about the volumes of pods: they are there before a container starts, as long as the pod lives, and up to date. */
export class VolumeRules {
  readonly #world: World;
  readonly #fail: (rule: string, message: string) => void;
  /** Directories of emptyDirs in which programs have written. */
  readonly #marked = new Set<string>();

  constructor(world: World, fail: (rule: string, message: string) => void) {
    this.#world = world;
    this.#fail = fail;
    world.engine.onVolumeRemoval = (name) => fail("volume", `the volume ${name} is removed, and its data with it`);
  }

  /** Contents that were not synced may be lost. */
  notePowerCut(): void {
    this.#marked.clear();
  }

  /** A container is made, where nothing is wrong: its variables have the values that were written last. */
  noteCreate(container: ModelContainer, wanted: WantedPod): void {
    if (this.#world.time.nowMs - Math.max(wanted.configMs ?? 0, wanted.changedMs) < VALUES_KNOWN_MS) return;
    const wrong = findOldValue(container, wanted);
    if (wrong !== undefined) this.#fail("values", wrong);
  }

  /** A program starts, and writes to its emptyDir. @param wanted its pod, if anyone wants it */
  noteStart(container: ModelContainer, wanted: WantedPod | undefined): void {
    const { disk } = this.#world;
    const claim = allMountsOf(container).find(({ target }) => target === MOUNTS.claim)?.source;
    const wantedClaim = `${CLAIM}-${container.labels["io.kubernetes.pod.name"]}`;
    if (wanted?.kind === "StatefulSet" && claim !== wantedClaim)
      return this.#fail("volume", `${container.name} starts with ${claim ?? "no volume"} instead of ${wantedClaim}`);
    for (const { source, target } of mountsOf(container)) {
      const isThere = disk.exists(source);
      if (!isThere) return this.#fail("volume", `${container.name} starts without ${source}`);
      if (target === MOUNTS.config) this.#checkConfig(container, source, wanted);
      if (target !== MOUNTS.data) continue;
      // A pod that has ended has no volumes; an edit lets it run again.
      const wrong = wanted && canEnd(wanted) ? undefined : this.#findLoss(container, source);
      if (wrong !== undefined) return this.#fail("volume", wrong);
      disk.write(`${source}/${MARK}`, MARK);
      this.#marked.add(source);
    }
  }

  /** A container has a version of its ConfigMap that someone wrote. */
  #checkConfig({ name }: ModelContainer, source: string, wanted: WantedPod | undefined): void {
    const text = this.#world.disk.read(`${source}/text`) ?? "nothing";
    const version = Number(/^config ([\d.]+)$/.exec(text)?.[1] ?? Number.NaN);
    if (Number.isNaN(version)) this.#fail("volume", `${name} starts with ${text} in the volume of its ConfigMap`);
    else if (wanted?.config !== undefined && version > wanted.config)
      this.#fail("volume", `${name} starts with version ${version} of its ConfigMap, which no one wrote`);
  }

  #findLoss({ name }: ModelContainer, source: string): string | undefined {
    const isLost = this.#marked.has(source) && this.#world.disk.read(`${source}/${MARK}`) !== MARK;
    return isLost ? `what the containers of ${name} wrote to ${source} is gone` : undefined;
  }

  /** Long after the last fault. @param running containers, with what is wanted of their pods. @returns what is wrong */
  findWrong(running: readonly (readonly [ModelContainer, WantedPod | undefined])[]): string | undefined {
    const { disk } = this.#world;
    for (const [container, wanted] of running) {
      const old = wanted && !wanted.job ? findOldValue(container, wanted) : undefined;
      if (old !== undefined) return old;
      for (const { source, target } of mountsOf(container)) {
        if (target === MOUNTS.data) {
          const wrong = this.#findLoss(container, source);
          if (wrong !== undefined) return wrong;
        }
        const text = target === MOUNTS.config && wanted?.config !== undefined && disk.read(`${source}/text`);
        const right = configText(wanted?.config);
        if (text !== false && text !== right) return `${container.name} reads "${text}" instead of "${right}"`;
      }
    }
    return undefined;
  }
}

function findOldValue({ name, body }: ModelContainer, wanted: WantedPod): string | undefined {
  const values = { CONFIG: configText(wanted.config), TOKEN: secretText(wanted) };
  const isOld = ([key, value]: [string, string]) =>
    body.Env?.some((text) => text.startsWith(`${key}=`) && text !== `${key}=${value}`);
  const old = Object.entries(values).find(isOld);
  return old && `${name} has an old value of ${old[0]}`;
}

const canEnd = ({ replicas, restartPolicy }: WantedPod) => replicas === undefined && restartPolicy !== "Always";

/** Mounts of volumes that belong to the pod. */
const mountsOf = (container: ModelContainer): Mounted[] =>
  allMountsOf(container).filter(({ source }) => source.startsWith(`${ROOT_DIR}/pods/`));

function allMountsOf({ body }: ModelContainer): Mounted[] {
  const { Binds = [], Mounts = [] } = body.HostConfig ?? {};
  const all = Binds.map((text) => text.split(":")).map(([source = "", target = ""]) => ({ source, target }));
  for (const { Source = "", Target } of Mounts) all.push({ source: Source, target: Target });
  return all;
}
