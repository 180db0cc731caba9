/** Lines of a change in the format of diff -U3, without a header; empty when both texts are equal. */
export function diffLines(before: string, after: string): string[] {
  const a = before.trimEnd().split("\n");
  const b = after.trimEnd().split("\n");
  const edits = editScript(a, b);
  const keep = new Set(
    edits.flatMap(({ sign }, index) =>
      sign === " " ? [] : Array.from({ length: 7 }, (_, offset) => index - 3 + offset),
    ),
  );
  const lines: string[] = [];
  edits.forEach(({ sign, line }, index) => {
    if (!keep.has(index)) return;
    if (lines.length > 0 && !keep.has(index - 1)) lines.push("…");
    lines.push(`${sign} ${line}`);
  });
  return lines;
}

interface Edit {
  sign: " " | "-" | "+";
  line: string;
}

/** Uses the longest common subsequence; quadratic time is fast enough for manifests. */
function editScript(a: readonly string[], b: readonly string[]): Edit[] {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const edits: Edit[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      edits.push({ sign: " ", line: a[i++] ?? "" });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      edits.push({ sign: "-", line: a[i++] ?? "" });
    } else edits.push({ sign: "+", line: b[j++] ?? "" });
  }
  return edits;
}
