import { useEffect, useState } from "preact/hooks";
import { RequestFailed } from "./connection.ts";

/**
 * Loads once per `key` and again on each `revision`; keeps the last answer meanwhile. An error is an answer of the server:
 * the notices of the page show that there is none.
 */
export function useLoaded<T>(key: string, revision: unknown, load: (signal: AbortSignal) => Promise<T>) {
  const [state, setState] = useState<{ key: string; value?: T; error?: string }>({ key });
  useEffect(() => {
    const controller = new AbortController();
    load(controller.signal).then(
      (value) => setState({ key, value }),
      (error: Error) => {
        if (error instanceof RequestFailed)
          setState((old) => ({ ...(old.key === key ? old : { key }), error: error.message }));
      },
    );
    return () => controller.abort();
  }, [key, revision]);
  return state.key === key ? state : { key };
}
