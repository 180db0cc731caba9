import { useState } from "preact/hooks";
import { applyManifest, compareManifest } from "./connection.ts";
import { describeApplied, describeChanges, describePlan } from "./describe-action.ts";
import { withVisibleMarks } from "./log-text.ts";
import { Button, NeedsSession, Plain, Question } from "./parts.tsx";
import type { ActionResult, CompareResult, PodDetail } from "./wire.ts";

/** Kept while the page is open: it must not be lost by a look at the pods. */
let draft = "";

export function ApplyView({ canAct, isOfCluster }: { canAct: boolean; isOfCluster: boolean }) {
  const [text, setText] = useState(draft);
  const [result, setResult] = useState<ActionResult>();
  const [plan, setPlan] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  if (isOfCluster) return <p class="empty">This node belongs to a cluster: apply the manifest with kubectl.</p>;
  if (!canAct) return <NeedsSession what="Applying a manifest" />;
  const send = async (isDryRun: boolean): Promise<ActionResult> => {
    const applied = await applyManifest(text, isDryRun);
    return { ok: applied.problems.length === 0, message: describeApplied(applied, isDryRun) };
  };
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setResult(undefined);
    await work();
    setBusy(false);
  };
  const check = () => run(async () => setResult(await send(true)));
  /** Nothing of a manifest is applied unless all of it can be. */
  const ask = () =>
    run(async () => {
      const checked = await applyManifest(text, true);
      if (checked.problems.length > 0) setResult({ ok: false, message: describeApplied(checked, true) });
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
        <Button text="Check" disabled={isUnusable} onClick={check} />
        <Button text="Apply" disabled={isUnusable} onClick={ask} />
      </div>
      {plan !== undefined && (
        <Question
          action="Apply"
          text="Apply this manifest to the node?"
          details={plan}
          onResponse={(yes) => {
            setPlan(undefined);
            if (yes) void run(async () => setResult(await send(false)));
          }}
        />
      )}
      <div role="status">
        {isBusy && <p class="note">Working…</p>}
        {result && <pre class={result.ok ? "banner" : "banner bad"}>{result.message}</pre>}
      </div>
    </>
  );
}

/** The manifest with what is wrong in it; with a session, a place to try an edit. */
export function ManifestTab({ detail, canAct }: { detail: PodDetail; canAct: boolean }) {
  const { text, isSource, firstLine, findings } = detail.manifest;
  const [edit, setEdit] = useState<string>();
  const lines = text.split("\n");
  const last = firstLine + lines.length - 1;
  const elsewhere = isSource ? findings.filter(({ line }) => line < firstLine || line > last) : findings;
  return (
    <section class="card">
      <p class="note">
        {!isSource && "The pod as the kubelet runs it. Its source: "}
        <Plain text={detail.row.source} />
      </p>
      {elsewhere.length > 0 && (
        <ul class="plain">
          {elsewhere.map((finding) => (
            <li key={`${finding.line}:${finding.column}:${finding.message}`}>
              <FindingText {...finding} place={`line ${finding.line}: `} />
            </li>
          ))}
        </ul>
      )}
      {edit === undefined ? (
        <>
          {canAct && (
            <div class="buttons">
              <Button text="Try an edit" onClick={() => setEdit(text)} />
            </div>
          )}
          <section class="manifest" tabIndex={0} aria-label="Manifest">
            {lines.map((line, index) => {
              const number = firstLine + index;
              const here = isSource ? findings.filter((finding) => finding.line === number) : [];
              return (
                <div key={number} class={here.length > 0 ? "source-line wrong" : "source-line"}>
                  <span class="line-number" aria-hidden="true">
                    {number}
                  </span>
                  <code dir="ltr">{withVisibleMarks(line)}</code>
                  {here.map((finding) => (
                    <FindingText
                      key={`${finding.column}${finding.message}`}
                      {...finding}
                      place={`column ${finding.column}: `}
                    />
                  ))}
                </div>
              );
            })}
          </section>
        </>
      ) : (
        <EditBox text={edit} onText={setEdit} onEnd={() => setEdit(undefined)} source={detail.row.source} />
      )}
    </section>
  );
}

const FindingText = ({ place, isError, message }: { place: string; isError: boolean; message: string }) => (
  <div class={isError ? "finding bad" : "finding warn"}>
    <Plain text={`${isError ? "Error" : "Warning"}, ${place}${message}`} />
  </div>
);

function EditBox(props: { text: string; onText: (text: string) => void; onEnd: () => void; source: string }) {
  const { text, onText, onEnd, source } = props;
  const [result, setResult] = useState<CompareResult>();
  return (
    <>
      <textarea
        aria-label="Edited manifest"
        spellcheck={false}
        rows={24}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      <div class="buttons">
        <Button text="What would restart?" onClick={async () => setResult(await compareManifest(text))} />
        <Button text="Discard the edit" onClick={onEnd} />
      </div>
      <p class="note">
        Nothing is changed here:{" "}
        {source !== "submitted" ? (
          <>
            save the edit in <Plain text={source} />.
          </>
        ) : (
          <>
            to make the edit, <a href="#/apply">apply</a> it.
          </>
        )}
      </p>
      <div role="status">
        {result && <pre class={result.problems.length === 0 ? "banner" : "banner bad"}>{describeChanges(result)}</pre>}
      </div>
    </>
  );
}
