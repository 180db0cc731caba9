/** Undoes the octal escapes (`\040` for a space) of mountinfo and mounts. Source: proc(5). */
export function unescapeMountPath(text: string): string {
  return text.includes("\\")
    ? text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    : text;
}
