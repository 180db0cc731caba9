import { expect } from "bun:test";
import { ImageRefusal, type RegistryProblem } from "../../src/base/model/container-engine.ts";
import { PodStepError } from "../../src/plan/waiting-reasons.ts";

/** The error of a call that must fail, with the problem that a registry had. */
export async function imageFailure(
  call: Promise<unknown>,
): Promise<PodStepError & { problem: RegistryProblem | undefined }> {
  const error = await call.then(
    () => new Error("the image is present"),
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(PodStepError);
  const { cause } = error as PodStepError;
  return Object.assign(error as PodStepError, { problem: cause instanceof ImageRefusal ? cause.problem : undefined });
}
