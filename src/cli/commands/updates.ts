import { formatSince } from "../../apiserver/printers/rows.ts";
import type { ResourceDefinition } from "../../apiserver/resource-definition.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import type { ImageUpdateReport } from "../../kubelet/images/image-update-targets.ts";
import { ApiClient } from "../client/api-client.ts";
import { kindNames, loadServedKinds } from "../client/object-targets.ts";
import { TextTable } from "../print/text-table.ts";
import { CommandError, type CommandIo, type CommandRequest, durationFlag, UsageError } from "../sub-command.ts";

const PATH = "/apis/kubelet-ts.io/v1/imageupdates";
const POLL_MS = 500;
const DEFAULT_TIMEOUT_MS = 15 * 60_000;

/** `kubelet-ts updates`. Returns the exit code. */
export async function runUpdates(request: CommandRequest, io: CommandIo): Promise<number> {
  const { positionals, isOn, value } = request;
  if (isOn("now") && isOn("undo")) throw new UsageError("give --now or --undo, not both");
  if (isOn("undo") && positionals.length === 0) throw new UsageError("name what to undo, as in: updates --undo web");
  const timeoutMs = durationFlag(request, "timeout") ?? DEFAULT_TIMEOUT_MS;
  const api = await ApiClient.open(request);
  const all = await list(api);
  const owners = await ownersOf(positionals, all, value("namespace"));
  if (isOn("undo")) return await undo(api, owners ?? [], io);
  if (isOn("now")) {
    const responses = await Promise.all(
      (owners ?? [undefined]).map((owner) => api.json<{ count: number }>("POST", PATH, { action: "now", owner })),
    );
    const count = responses.reduce((sum, response) => sum + response.count, 0);
    io.stderr(`${count === 1 ? "1 image is" : `${count} images are`} looked up\n`);
  }
  const items = isOn("wait") ? await waitForEnd(api, owners, timeoutMs) : isOn("now") ? await list(api) : all;
  const shown = items.filter(({ owner }) => owners?.includes(owner) ?? true);
  if (value("output") === "json") io.stdout(`${JSON.stringify({ items: shown }, null, 2)}\n`);
  else if (shown.length === 0) {
    io.stderr(
      "No image is kept up to date: give pods the annotation kubelet-ts.io/image-update, or set --image-update\n",
    );
  } else io.stdout(toTable(shown, value("output") === "wide", io.now()));
  return isOn("wait") && shown.some(({ state }) => state === "failed") ? 1 : 0;
}

const list = async (api: ApiClient) => (await api.json<{ items: ImageUpdateReport[] }>("GET", PATH)).items;

async function undo(api: ApiClient, owners: readonly string[], io: CommandIo): Promise<number> {
  let isDone = true;
  for (const owner of owners) {
    const { images } = await api.json<{ images: string[] }>("POST", PATH, { action: "undo", owner });
    for (const image of images) io.stdout(`${owner}: ${image} goes back to the previous image\n`);
    if (images.length > 0) continue;
    isDone = false;
    io.stderr(`${owner}: there is no former image to go back to\n`);
  }
  return isDone ? 0 : 1;
}

async function waitForEnd(api: ApiClient, owners: readonly string[] | undefined, timeoutMs: number) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const items = await list(api);
    const busy = items.filter(({ owner, isBusy }) => isBusy && (owners?.includes(owner) ?? true));
    if (busy.length === 0) return items;
    if (Date.now() >= end) {
      const names = busy.map(({ owner, image }) => `${owner} (${image})`).join(", ");
      throw new CommandError(`timed out after ${timeoutMs / 1000} s: still under way: ${names}`);
    }
    await Bun.sleep(POLL_MS);
  }
}

/** Owners by what users write; undefined: all. @throws CommandError for a name without images that are updated */
async function ownersOf(names: readonly string[], items: readonly ImageUpdateReport[], namespace: string | undefined) {
  const known = [...new Set(items.map(({ owner }) => owner))].filter(
    (owner) => namespace === undefined || owner.startsWith(`${namespace}/`),
  );
  if (names.length === 0) return namespace === undefined ? undefined : known;
  const kinds = await loadServedKinds();
  return names.map((name) => {
    const exact = known.filter((owner) => matchesOwner(name, owner, kinds));
    // `get pods` shows the name of a pod with that of the node at its end.
    const found =
      exact.length > 0 ? exact : known.filter((owner) => matchesOwner(name, `${owner}-${nodeOf(name, owner)}`, kinds));
    if (found.length === 1) return found[0]!;
    if (found.length > 1) throw new CommandError(`"${name}" is ambiguous: ${found.join(", ")}`);
    const isVerb = /^(?:undo|rollback|revert)$/.test(name);
    const hint = isVerb
      ? "; to go back to the image before: kubelet-ts updates --undo NAME"
      : didYouMean(name, known) || (known.length > 0 ? `; there are ${known.join(", ")}` : "");
    throw new CommandError(`no image of "${name}" is kept up to date${hint}`);
  });
}

/** The part of a written name after the name of the pod. */
const nodeOf = (name: string, owner: string) => name.slice(name.lastIndexOf("/") + 1).slice(nameOf(owner).length + 1);

const nameOf = (owner: string) => owner.slice(owner.lastIndexOf("/") + 1);

/** `web`, `shop/web`, `deployment/web`, `deploy/web`. */
function matchesOwner(name: string, owner: string, kinds: readonly ResourceDefinition[]): boolean {
  const [namespace = "", ...rest] = owner.split("/");
  const kind = rest.length > 1 ? rest[0]!.toLowerCase() : "pod";
  const parts = name.split("/");
  if (parts.pop() !== nameOf(owner)) return false;
  const names = kinds.filter((it) => it.singular === kind).flatMap(kindNames);
  return parts.every((part) => part === namespace || names.includes(part.toLowerCase()));
}

function toTable(items: readonly ImageUpdateReport[], isWide: boolean, now: Date): string {
  const header = ["OWNER", "IMAGE", "STATE", "RUNNING", "AVAILABLE", "CHECKED", "NEXT", "MESSAGE"];
  const rows = items.map((item) => {
    const { owner, image, state, checkedAt, nextCheckAt } = item;
    const short = (ref: string | undefined, tag: string | undefined) =>
      ref === undefined ? "<none>" : isWide ? ref : `${tag ?? ""}@${digestOf(ref)}`;
    const ago = checkedAt === undefined ? "<never>" : formatSince(checkedAt, now);
    const next = nextCheckAt === undefined ? "<none>" : untilNext(new Date(nextCheckAt), now);
    const running = short(item.current, item.currentTag);
    return [owner, image, state, running, short(item.candidate, item.candidateTag), ago, next, item.message];
  });
  return new TextTable().render([header, ...rows]);
}

const untilNext = (next: Date, now: Date) => (next > now ? `in ${formatSince(now.toISOString(), next)}` : "now");

const digestOf = (ref: string) => ref.slice(ref.indexOf("sha256:") + "sha256:".length).slice(0, 12);
