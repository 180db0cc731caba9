import { useState } from "preact/hooks";
import { act } from "./connection.ts";
import { NeedsSession, Question } from "./parts.tsx";
import type { ActionResult } from "./wire.ts";

/** Checks and submits a manifest. */
export function ApplyView({ canAct, isOfCluster }: { canAct: boolean; isOfCluster: boolean }) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<ActionResult>();
  const [isAsking, setAsking] = useState(false);
  if (isOfCluster) return <p class="empty">This node belongs to a cluster: apply the manifest with kubectl.</p>;
  if (!canAct) return <NeedsSession what="Applying a manifest" />;
  const send = async (dryRun: boolean) => setAnswer(await act("/page/api/apply", { manifest: text, dryRun }));
  return (
    <>
      <h1>Apply a manifest</h1>
      <textarea
        aria-label="Manifest"
        placeholder="apiVersion: v1&#10;kind: Pod&#10;…"
        spellcheck={false}
        rows={24}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="buttons">
        <button type="button" disabled={text.trim() === ""} onClick={() => send(true)}>
          Check
        </button>
        <button type="button" disabled={text.trim() === ""} onClick={() => setAsking(true)}>
          Apply
        </button>
      </div>
      {isAsking && (
        <Question
          action="Apply"
          text="Apply this manifest to the node? Containers that it changes are restarted."
          onAnswer={(yes) => {
            setAsking(false);
            if (yes) void send(false);
          }}
        />
      )}
      <div role="status">{answer && <pre class={answer.ok ? "banner" : "banner bad"}>{answer.message}</pre>}</div>
    </>
  );
}
