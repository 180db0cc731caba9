interface Flight<T> {
  promise: Promise<T>;
  stop: AbortController;
  waiting: number;
}

/** Lets many wait for the same piece of work, done once. It is stopped when the last of them has gone away. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** How many different works are under way. */
  get size(): number {
    return this.#flights.size;
  }

  /**
   * The outcome of the work named `key`, which is begun if it is not under way.
   * @throws what `work` throws; the signal's reason for whoever goes away early
   */
  async join(key: string, work: (stop: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#begin(key, work);
    flight.waiting++;
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        flight.waiting--;
        if (flight.waiting === 0) {
          // Whoever comes now must not join what is being stopped.
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
