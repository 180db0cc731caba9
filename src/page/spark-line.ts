/** Size of the drawing. Tenths of a pixel: whole numbers are quick to write. */
export const SPARK_WIDTH = 800;
export const SPARK_HEIGHT = 200;
const SPARK_MARGIN = 10;

/** Where the times of a spark line are on its width: it ends at the newest. Pure. @param spanMs time of the whole width */
export function sparkPositions(times: readonly number[], spanMs: number): number[] {
  const end = times.at(-1) ?? 0;
  return times.map((time) => Math.round((1 - (end - time) / spanMs) * SPARK_WIDTH));
}

/** The path of a line from zero to its largest value, with gaps where there is none. Pure. @param positions of {@link sparkPositions} */
export function sparkPath(values: readonly (number | null)[], positions: readonly number[]): string {
  let max = 0;
  for (const value of values) if (value !== null && value > max) max = value;
  const scale = max === 0 ? 0 : (SPARK_HEIGHT - 2 * SPARK_MARGIN) / max;
  let path = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value !== null) {
      path += `${isDown ? "L" : "M"}${positions[index]} ${Math.round(SPARK_HEIGHT - SPARK_MARGIN - value * scale)}`;
    }
    isDown = value !== null;
  });
  return path;
}
