import * as v from "valibot";
import type { Clock } from "../../../src/base/model/clock.ts";
import { ApiStatusError } from "../../../src/cluster/client/api-error.ts";
import type { ApiRequest } from "../../../src/cluster/client/cluster-client.ts";
import { Reachability } from "../../../src/cluster/client/reachability.ts";

/** An API server of objects by path; a request of anything else is a 404, and a function answers as it likes. */
export class FakeApi {
  readonly reachability: Reachability;
  readonly requests: ApiRequest[] = [];
  readonly #answers = new Map<string, object | ((request: ApiRequest) => object)>();
  readonly #watches = new Map<string, (event: object) => void>();
  /** Why requests fail at present. */
  error: Error | undefined;

  constructor(clock: Clock) {
    this.reachability = new Reachability(clock, () => 0.5);
  }

  set(path: string, answer: object | ((request: ApiRequest) => object)): void {
    this.#answers.set(path, answer);
  }

  readonly request = async <T>(request: ApiRequest): Promise<T> => {
    this.requests.push(request);
    if (this.error) throw this.error;
    const answer = this.#answers.get(request.path);
    if (!answer) throw new ApiStatusError(404, "NotFound", `${request.path} not found`);
    return (typeof answer === "function" ? answer(request) : answer) as T;
  };

  readonly list = async (request: ApiRequest, onItem: (item: unknown) => void): Promise<string | undefined> => {
    const { metadata, items } = await this.request<{ metadata: { resourceVersion?: string }; items: object[] }>(
      request,
    );
    for (const item of items) onItem(item);
    return metadata.resourceVersion;
  };

  readonly read = <T>(schema: v.GenericSchema<unknown, T>, value: unknown): T => v.parse(schema, value);

  readonly resetWatches = (): void => {};

  /** A watch with the events of {@link emit}, until it is cancelled. */
  readonly watch = (
    path: string,
    _query: object,
    onEvent: (event: object) => void,
    options: { signal: AbortSignal },
  ): Promise<boolean> => {
    this.#watches.set(path, onEvent);
    return new Promise((resolve) => options.signal.addEventListener("abort", () => resolve(false), { once: true }));
  };

  /** Sends an event to the newest watch of a path. */
  emit(path: string, type: "ADDED" | "MODIFIED" | "DELETED", object: object): void {
    this.#watches.get(path)?.({ type, object });
  }
}
