import { Age, Badge, Plain, TableHead, type Tone } from "./parts.tsx";
import type { Condition } from "./wire.ts";

/** Conditions of the node or of a pod. @param toneOf whether a condition is as it should be */
export function ConditionTable({
  conditions,
  toneOf,
  now,
}: {
  conditions: readonly Condition[];
  toneOf: (condition: Condition) => Tone;
  now: number;
}) {
  return (
    <section class="card">
      <h2>Conditions</h2>
      <table class="stacked">
        <TableHead columns={["Type", "Status", "Since", "Reason", "Message"]} />
        <tbody>
          {conditions.map((condition) => (
            <tr key={condition.type}>
              <th scope="row">
                <bdi>{condition.type}</bdi>
              </th>
              <td class="fixed">
                <Badge tone={toneOf(condition)}>{condition.status}</Badge>
              </td>
              <td class="fixed">
                <Age at={condition.since} now={now} />
              </td>
              <td class="fixed">
                <bdi>{condition.reason}</bdi>
              </td>
              <td class="message">
                <Plain text={condition.message} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A condition of a pod: `DisruptionTarget` is the one that is good when it is not true. Pure. */
export function podConditionTone({ type, status, reason }: Condition): Tone {
  if (reason === "PodCompleted") return "idle";
  return (status === "True") === (type !== "DisruptionTarget") ? "good" : "warn";
}
