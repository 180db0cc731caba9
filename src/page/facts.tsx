import { Plain } from "./parts.tsx";

/** Characters; a longer value has a line of its own. */
const LONG_FACT = 100;

/** A name with its value, in a list of such (`dl`). */
export const Fact = ({ name, value }: { name: string; value: string }) => (
  <div class={value.length > LONG_FACT ? "long" : undefined}>
    <dt>
      <Plain text={name} />
    </dt>
    <dd>
      <Plain text={value || "-"} />
    </dd>
  </div>
);

/** `name=value`, shortened; whole on hover. */
export const Labels = ({ name, labels }: { name: string; labels: Record<string, string> }) =>
  Object.keys(labels).length > 0 && (
    <ul class="labels" aria-label={name}>
      <li class="labels-name" aria-hidden="true">
        {name}
      </li>
      {Object.entries(labels).map(([key, value]) => (
        <li key={key} title={`${key}=${value}`}>
          <Plain text={`${key}=${value}`} />
        </li>
      ))}
    </ul>
  );
