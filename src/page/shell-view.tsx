import { useEffect, useRef, useState } from "preact/hooks";
import { loadPart } from "./connection.ts";
import { ContainerChoice } from "./parts.tsx";
import type { PodRow } from "./pod-row.ts";
import type { ShellEnd } from "./shell-messages.ts";
import type { OpenTerminal } from "./terminal.ts";
import type { ContainerDetail } from "./wire.ts";

/** A shell in a container. The terminal is loaded when this is shown first, and stays while another part of the pod is. */
export function ShellView({
  pod: { uid, name, namespace },
  containers,
  isShown,
}: {
  pod: PodRow;
  containers: readonly ContainerDetail[];
  isShown: boolean;
}) {
  const running = containers.filter(({ status }) => status?.state.running).map(({ spec }) => spec.name);
  const first =
    containers.find(({ status, kind }) => status?.state.running && kind === "main")?.spec.name ?? running[0] ?? "";
  const [container, setContainer] = useState(first);
  const [attempt, setAttempt] = useState(0);
  const [end, setEnd] = useState<ShellEnd>();
  const place = useRef<HTMLDivElement>(null);
  const again = useRef<HTMLButtonElement>(null);
  const terminal = useRef<OpenTerminal | undefined>(undefined);
  // None ran when this was shown.
  if (container === "" && first !== "") setContainer(first);
  useEffect(() => {
    const element = place.current;
    if (container === "" || !element) return;
    const gone = new AbortController();
    setEnd(undefined);
    const onEnd = (how: ShellEnd) => {
      const hadFocus = element.contains(document.activeElement);
      setEnd(how);
      // Enter opens the next shell.
      if (hadFocus) requestAnimationFrame(() => again.current?.focus());
    };
    void loadPart(() => import("./terminal.ts"), gone.signal).then((part) => {
      terminal.current = part?.openTerminal(element, uid, container, onEnd);
    });
    return () => {
      gone.abort();
      terminal.current?.close();
      terminal.current = undefined;
    };
  }, [uid, container, attempt]);
  useEffect(() => {
    // After the new view has got the focus.
    if (isShown) requestAnimationFrame(() => terminal.current?.focus());
  }, [isShown]);
  const isRunning = running.includes(container);
  const choices = isRunning || container === "" ? running : [container, ...running];
  return (
    <section class="card">
      {container === "" ? (
        <p class="empty">No container of this pod is running. A shell is opened when one does.</p>
      ) : (
        <div class="toolbar">
          <ContainerChoice
            value={container}
            options={choices.map((name) => [name, running.includes(name) ? name : `${name} (not running)`])}
            onChange={setContainer}
          />
          {end && (
            <button ref={again} type="button" disabled={!isRunning} onClick={() => setAttempt(attempt + 1)}>
              New shell
            </button>
          )}
          <span class="note" role="status">
            {end?.message}
            {end && !isRunning && " The container does not run now."}
            {end?.isMissing && (
              <>
                {" "}
                A container with one can be added to the pod, and is then offered here:{" "}
                <code>
                  kubectl debug -n {namespace} {name} --image=busybox:1.35 --target={container} -- sleep 3600
                </code>
              </>
            )}
          </span>
        </div>
      )}
      <div ref={place} class="terminal" />
      {container !== "" && (
        <p class="note">
          Tab and Escape are for the shell; <kbd>Shift</kbd>+<kbd>Tab</kbd> leaves the terminal. <kbd>Ctrl</kbd>+
          <kbd>Shift</kbd>+<kbd>C</kbd> copies, <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>V</kbd> pastes. The shell ends
          when you leave this pod.
        </p>
      )}
    </section>
  );
}
