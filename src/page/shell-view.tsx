import { useEffect, useRef, useState } from "preact/hooks";
import type { ContainerDetail } from "./wire.ts";

/** A shell in a container. The terminal is loaded when this opens. */
export function ShellView({ uid, containers }: { uid: string; containers: readonly ContainerDetail[] }) {
  const running = containers.filter(({ isRunning }) => isRunning);
  const [container, setContainer] = useState(
    running.find(({ kind }) => kind === "main")?.name ?? running[0]?.name ?? "",
  );
  const [attempt, setAttempt] = useState(0);
  const [problem, setProblem] = useState("");
  const [isClosed, setClosed] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (container === "" || !place.current) return;
    const element = place.current;
    let close = () => {};
    let isGone = false;
    setProblem("");
    setClosed(false);
    import("./terminal.ts").then(
      ({ openTerminal }) => {
        if (isGone) return;
        close = openTerminal(element, uid, container, (message) => {
          setProblem(message);
          setClosed(true);
        });
      },
      () => {
        setProblem("The terminal could not be loaded.");
        setClosed(true);
      },
    );
    return () => {
      isGone = true;
      close();
    };
  }, [uid, container, attempt]);
  if (running.length === 0) return <p class="empty">No container of this pod is running.</p>;
  return (
    <section class="card">
      <div class="toolbar">
        <select aria-label="Container" value={container} onChange={(event) => setContainer(event.currentTarget.value)}>
          {running.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        {isClosed && (
          <button type="button" onClick={() => setAttempt(attempt + 1)}>
            New shell
          </button>
        )}
        <span class="note" role="status">
          {problem}
        </span>
        {!isClosed && (
          <span class="note">
            <kbd>Shift</kbd>+<kbd>Tab</kbd> leaves the terminal.
          </span>
        )}
      </div>
      <div ref={place} class="terminal" />
    </section>
  );
}
