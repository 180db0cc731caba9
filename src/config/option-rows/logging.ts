import { boolean, directory, integer, MAX_INT32, oneOf } from "../kinds/scalar-kinds.ts";
import { inapplicable, OURS, option, options, UPSTREAM } from "../option-row.ts";

export const LOGGING_OPTIONS = options("Logging", {
  eventRecordQps: option("event-qps", "eventRecordQPS", integer(0, MAX_INT32, "0 = no limit"), 0, {
    description:
      "Events of pods recorded per second, those beyond it are dropped; 0 sets no limit, except that an API server gets 50 a second.",
    zeroCounts: true,
  }),
  eventBurst: option("event-burst", UPSTREAM, integer(0, MAX_INT32), 100, {
    description: "Events recorded at once within --event-qps.",
  }),
  verbosity: option("v", "logging.verbosity", integer(0, 10), 0, {
    short: "v",
    description: "Log verbosity: 0 and 1 events, 2 and more also reasons.",
    live: true,
  }),
  logFormat: option("log-format", "logging.format", oneOf("text", "json", "journald"), "text", {
    oldFlag: "logging-format",
    description:
      "Text lines, one JSON object per line, or entries of systemd's journal with fields such as POD and CONTAINER.",
  }),
  logDir: option("log-dir", OURS, directory, "", {
    description: "Directory for log files, in addition to the terminal.",
  }),
  logToStderr: option("logtostderr", undefined, boolean, true, {
    description: "Log to the terminal; false only makes sense with --log-dir.",
  }),
});

export const LOGGING_OTHERS = [
  ...inapplicable(
    "log lines have one format",
    `
      add-dir-header? alsologtostderr? log-backtrace-at log-file log-file-max-size
      log-flush-frequency|logging.flushFrequency one-output? skip-headers? skip-log-headers? stderrthreshold
      vmodule|logging.vmodule |logging.options |logging.sanitization experimental-logging-sanitization?
      log-text-split-stream? log-text-info-buffer-size log-json-split-stream? log-json-info-buffer-size`,
  ),
];
