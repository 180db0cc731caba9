import type { Logger } from "../../src/base/model/logger.ts";
import type { EventRecorder, PodEvent } from "../../src/base/model/pod-event.ts";

/** Keeps every line as `level message`. */
export class RecordingLogger implements Logger {
  readonly lines: string[] = [];
  error = (message: string) => void this.lines.push(`error ${message}`);
  warn = (message: string) => void this.lines.push(`warn ${message}`);
  info = (message: string) => void this.lines.push(`info ${message}`);
  debug = (message: string) => void this.lines.push(`debug ${message}`);
}

/** Keeps every event as `pod Reason message`. */
export class RecordingRecorder implements EventRecorder {
  readonly events: string[] = [];
  record({ name }: { name: string }, { reason, message }: PodEvent): void {
    this.events.push(`${name} ${reason} ${message}`);
  }
}
