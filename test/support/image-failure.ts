import { expect } from "bun:test";
import { ImageError } from "../../src/kubelet/images/image-manager.ts";

/** The ImageError of a call that must fail. */
export async function imageFailure(call: Promise<unknown>): Promise<ImageError> {
  const error = await call.then(
    () => new Error("the image is present"),
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(ImageError);
  return error as ImageError;
}
