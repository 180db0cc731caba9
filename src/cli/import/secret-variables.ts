/** Names of environment variables whose values are likely to be secret. */
const SECRET_NAME = /PASS(?:WORD|WD|PHRASE)?(?:$|_)|SECRET|TOKEN|API_?KEY|(?:^|_)KEY(?:$|_)|CREDENTIAL/i;
/** A URL with a password: `postgres://user:password@host`. */
const SECRET_VALUE = /:\/\/[^\s/:@]*:[^\s/@]+@/;

interface ImportedVariables {
  env: object[];
  /** A Secret with the values that were split off. */
  secret?: object;
}

/**
 * Variables of a container. Values that look secret are moved to a Secret.
 * @param secretName name of that Secret
 */
export function toVariables(variables: ReadonlyMap<string, string>, secretName: string): ImportedVariables {
  const stringData: Record<string, string> = {};
  const env = [...variables].map(([name, value]) => {
    const isSecret = SECRET_NAME.test(name) || SECRET_VALUE.test(value);
    if (value === "" || !isSecret || !/^[-._a-zA-Z0-9]+$/.test(name)) {
      return { name, value: value.replaceAll("$(", "$$$$(") };
    }
    stringData[name] = value;
    return { name, valueFrom: { secretKeyRef: { name: secretName, key: name } } };
  });
  if (Object.keys(stringData).length === 0) return { env };
  return { env, secret: { apiVersion: "v1", kind: "Secret", metadata: { name: secretName }, stringData } };
}
