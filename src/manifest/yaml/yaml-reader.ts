import { TextError } from "./source-node.ts";

// White space by libyaml's rules. The functions take a UTF-16 code; NaN is the end of the text.
export const isBlank = (code: number) => code === 0x20 || code === 0x09;
export const isBreak = (code: number) =>
  code === 0x0a || code === 0x0d || code === 0x85 || code === 0x2028 || code === 0x2029;
export const isBlankOrEnd = (code: number) => isBlank(code) || isBreak(code) || Number.isNaN(code);

/** Reads a text character by character and keeps track of lines, indentation and open flow collections. */
export class YamlReader {
  readonly text: string;
  position = 0;
  /** Offset of the current line's first character. */
  lineStart = 0;
  line = 0;
  /** Column of the innermost open block collection, -1 outside of all. */
  indent = -1;
  flowLevel = 0;

  constructor(text: string) {
    this.text = text;
  }

  get column(): number {
    return this.position - this.lineStart;
  }

  code(ahead = 0): number {
    return this.text.charCodeAt(this.position + ahead);
  }

  /** Consumes one line break; CR LF counts as one. Returns its value inside a scalar. */
  readBreak(): string {
    const code = this.code();
    this.position += code === 0x0d && this.code(1) === 0x0a ? 2 : 1;
    this.lineStart = this.position;
    this.line++;
    return code === 0x2028 || code === 0x2029 ? String.fromCharCode(code) : "\n";
  }

  /** Whether the current line begins with `---` or `...` followed by white space. */
  atDocumentIndicator(): boolean {
    if (this.position !== this.lineStart) return false;
    const code = this.code();
    return (
      (code === 0x2d || code === 0x2e) && this.code(1) === code && this.code(2) === code && isBlankOrEnd(this.code(3))
    );
  }

  fail(message: string, offset = this.position): never {
    throw new TextError(message, offset);
  }
}
