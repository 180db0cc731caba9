import { useState } from "preact/hooks";
import { applyManifest, compareManifest } from "./connection.ts";
import { describeApplied, describePlan } from "./describe-action.ts";
import { NeedsSession, Question } from "./parts.tsx";
import type { ActionResult } from "./wire.ts";

/** Kept while the page is open: a look at the pods must not cost what was written. */
let draft = "";

/** Checks and submits a manifest. */
export function ApplyView({ canAct, isOfCluster }: { canAct: boolean; isOfCluster: boolean }) {
  const [text, setText] = useState(draft);
  const [answer, setResponse] = useState<ActionResult>();
  const [plan, setPlan] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  if (isOfCluster) return <p class="empty">This node belongs to a cluster: apply the manifest with kubectl.</p>;
  if (!canAct) return <NeedsSession what="Applying a manifest" />;
  const send = async (isDryRun: boolean): Promise<ActionResult> => {
    const result = await applyManifest(text, isDryRun);
    return { ok: result.problems.length === 0, message: describeApplied(result, isDryRun) };
  };
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setResponse(undefined);
    await work();
    setBusy(false);
  };
  const check = () => run(async () => setResponse(await send(true)));
  /** A manifest that cannot be applied as a whole is not begun. */
  const ask = () =>
    run(async () => {
      const checked = await applyManifest(text, true);
      if (checked.problems.length > 0) setResponse({ ok: false, message: describeApplied(checked, true) });
      else setPlan(describePlan(checked, await compareManifest(text)));
    });
  const isUnusable = isBusy || text.trim() === "";
  return (
    <>
      <h1>Apply a manifest</h1>
      <textarea
        aria-label="Manifest"
        placeholder="apiVersion: v1&#10;kind: Pod&#10;…"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        rows={24}
        value={text}
        onInput={(event) => {
          draft = event.currentTarget.value;
          setText(draft);
        }}
      />
      <div class="buttons">
        <button type="button" disabled={isUnusable} onClick={check}>
          Check
        </button>
        <button type="button" disabled={isUnusable} onClick={ask}>
          Apply
        </button>
      </div>
      {plan !== undefined && (
        <Question
          action="Apply"
          text="Apply this manifest to the node?"
          details={plan}
          onResponse={(yes) => {
            setPlan(undefined);
            if (yes) void run(async () => setResponse(await send(false)));
          }}
        />
      )}
      <div role="status">
        {isBusy && <p class="note">Working…</p>}
        {answer && <pre class={answer.ok ? "banner" : "banner bad"}>{answer.message}</pre>}
      </div>
    </>
  );
}
