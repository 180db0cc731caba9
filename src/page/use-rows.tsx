import { useState } from "preact/hooks";

const SHOWN_ROWS = 20;

/** The first rows of a long list, and a button for the rest. */
export function useRows<T>(rows: readonly T[]) {
  const [isAll, setAll] = useState(false);
  const button = rows.length > SHOWN_ROWS && (
    <button type="button" class="more" onClick={() => setAll(!isAll)}>
      {isAll ? `Show the first ${SHOWN_ROWS}` : `Show all ${rows.length}`}
    </button>
  );
  return { shown: isAll ? rows : rows.slice(0, SHOWN_ROWS), button };
}
