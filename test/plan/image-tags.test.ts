import { expect, test } from "bun:test";
import { pickTag } from "../../src/plan/image-tags.ts";

test.each([
  {
    when: "the highest of the range",
    tags: ["1.4.2", "1.4.10", "1.5.0"],
    range: "~1.4",
    present: "1.4.1",
    want: "1.4.10",
  },
  { when: "a leading v", tags: ["v2.0.1", "v2.1.0"], range: "^2", present: "v2.0.0", want: "v2.1.0" },
  { when: "never below the present one", tags: ["1.4.1", "1.4.2"], range: "~1.4", present: "1.4.3", want: undefined },
  { when: "no release candidate", tags: ["1.4.3-rc.1", "1.4.2"], range: "~1.4", present: "1.4.1", want: "1.4.2" },
  {
    when: "the same variant",
    tags: ["1.4.3", "1.4.2-alpine"],
    range: "~1.4",
    present: "1.4-alpine",
    want: "1.4.2-alpine",
  },
  { when: "no other variant", tags: ["1.4.3-alpine"], range: "~1.4", present: "1.4.1", want: undefined },
  {
    when: "no tag that names several versions",
    tags: ["1.4", "1", "latest"],
    range: "*",
    present: "1.4.0",
    want: undefined,
  },
  { when: "a present tag without a version", tags: ["1.4.3", "2.0.0"], range: "1.x", present: "latest", want: "1.4.3" },
])("$when", ({ tags, range, present, want }) => {
  expect(pickTag(tags, range, present)).toBe(want);
});
