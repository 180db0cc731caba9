import { expect } from "bun:test";

/** An answer of a real kubelet, as test/fixtures/oracle/http holds them. */
export interface RecordedResponse {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  body?: string;
  /** Then `body` is only its beginning. */
  bodyIsLong?: boolean;
  /** `Name: value`, what the request carried beyond the usual. */
  requestHeaders?: string;
}

/** Code, the headers that clients act on, and the body where all of it was recorded. */
export async function expectRecorded(
  answer: { status: number; headers: Record<string, string> },
  text: () => Promise<string>,
  want: RecordedResponse,
): Promise<void> {
  expect(answer.status).toBe(want.status);
  for (const name of ["Content-Type", "X-Content-Type-Options", "Location"]) {
    expect([name, answer.headers[name]]).toEqual([name, want.headers[name]]);
  }
  if (want.body !== undefined && !want.bodyIsLong) expect(await text()).toBe(want.body);
}
