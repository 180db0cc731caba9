import { expect, test } from "bun:test";
import type { ProgressLine } from "../../src/docker/engine/image-schema.ts";
import { PullProgress } from "../../src/docker/pull-progress.ts";

const line = (id: string, status: string, current = 0, total = 0) =>
  ({ id, status, progressDetail: { current, total } }) as ProgressLine;

test("layers add up as the engine reports them", () => {
  const progress = new PullProgress("app:1");
  const steps = [
    line("1", "Pulling from app"),
    line("a", "Pulling fs layer"),
    line("b", "Already exists"),
    line("a", "Downloading", 40, 100),
    line("a", "Download complete"),
    line("a", "Extracting", 10, 100),
    line("a", "Pull complete"),
    line("", "Status: Downloaded newer image for app:1"),
  ].map((step) => progress.add(step));
  expect(
    steps.map(({ layers, layersDone, downloadedBytes, totalBytes }) => [
      layers,
      layersDone,
      downloadedBytes,
      totalBytes,
    ]),
  ).toEqual([
    [0, 0, 0, 0],
    [1, 0, 0, 0],
    [2, 1, 0, 0],
    [2, 1, 40, 100],
    [2, 1, 100, 100],
    [2, 1, 100, 100],
    [2, 2, 100, 100],
    [2, 2, 100, 100],
  ]);
  expect(steps[0]?.image).toBe("app:1");
});
