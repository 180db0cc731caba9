import type { Persisted } from "../../src/base/model/persisted.ts";

/** A state file in memory, which keeps what JSON keeps. */
export class StoredFile<T> implements Persisted<T> {
  content: T | undefined;

  constructor(content?: T) {
    this.content = content;
  }

  read(): T | undefined {
    return this.content;
  }

  write(value: T): void {
    this.content = JSON.parse(JSON.stringify(value));
  }
}
