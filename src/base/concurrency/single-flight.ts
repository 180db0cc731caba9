interface Flight<T> {
  promise: Promise<T>;
  stop: AbortController;
  waiting: number;
}

/** Runs work once for all callers that ask for it at the same time. The work is stopped when its last caller has aborted. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** Number of keys whose work is in progress. */
  get size(): number {
    return this.#flights.size;
  }

  /** Runs `work`, or waits for that in progress with the same key. @throws what it throws; the signal's reason */
  async do(key: string, work: (stop: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#begin(key, work);
    flight.waiting++;
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        flight.waiting--;
        if (flight.waiting === 0) {
          // A later caller must not get work that is being stopped.
          if (this.#flights.get(key) === flight) this.#flights.delete(key);
          flight.stop.abort(signal.reason);
        }
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      flight.promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
    });
  }

  #begin(key: string, work: (stop: AbortSignal) => Promise<T>): Flight<T> {
    const stop = new AbortController();
    const flight: Flight<T> = { stop, waiting: 0, promise: work(stop.signal) };
    this.#flights.set(key, flight);
    const end = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    flight.promise.then(end, end);
    return flight;
  }
}
