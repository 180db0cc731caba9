/**
 * A browser opens six connections to a server over HTTP/1.1, for all tabs together. So many may stay open; the others are
 * for requests that end. WebSockets are counted apart.
 */
const SLOTS = ["connection-1", "connection-2", "connection-3", "connection-4"] as const;
/** Hidden tabs give theirs back within this time. */
const GRACE_MS = 1000;

/** The part of the browser's lock manager that is used: a lock belongs to all tabs of one origin. */
export interface Locks {
  request(
    name: string,
    options: { ifAvailable?: boolean; signal?: AbortSignal },
    use: (lock: unknown) => Promise<void> | undefined,
  ): Promise<unknown>;
}

/**
 * Takes one of the few connections that may stay open.
 * @param signal ends the wait for one
 * @param onWait called once when none has become free for a second
 * @param ask asks hidden tabs for theirs
 * @returns a function that gives it back; undefined: the signal aborted first
 */
export async function claimSlot(
  locks: Locks,
  signal: AbortSignal,
  onWait: () => void,
  ask: () => void,
): Promise<(() => void) | undefined> {
  for (const name of SLOTS) {
    const release = await claim(locks, name);
    if (release) return release;
  }
  ask();
  const timer = setTimeout(onWait, GRACE_MS);
  try {
    return await claimFirst(locks, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** The slot of that name if it is free. */
const claim = (locks: Locks, name: string): Promise<(() => void) | undefined> =>
  new Promise((resolve, reject) => {
    const hold = (lock: unknown) => {
      if (lock) return new Promise<void>((release) => resolve(release));
      resolve(undefined);
      return undefined;
    };
    locks.request(name, { ifAvailable: true }, hold).catch(reject);
  });

/** Whichever slot becomes free first. */
const claimFirst = (locks: Locks, signal: AbortSignal): Promise<(() => void) | undefined> =>
  new Promise((resolve) => {
    const others = new AbortController();
    const waiting = SLOTS.map((name) =>
      locks.request(name, { signal: AbortSignal.any([signal, others.signal]) }, () => {
        // A second one became free at the same time.
        if (others.signal.aborted) return undefined;
        others.abort();
        return new Promise<void>((release) => resolve(release));
      }),
    );
    void Promise.allSettled(waiting).then(() => resolve(undefined));
  });
