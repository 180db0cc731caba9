import {
  BLANKS,
  isBlank,
  isBlankOrEnd,
  isBreak,
  LINE,
  type ScannedScalar,
  scanBlockScalar,
  scanPlainScalar,
  scanQuotedScalar,
  TAB_INDENT,
  YamlReader,
} from "./yaml-scalars.ts";

/**
 * Tokens of YAML 1.1, in the words of authors of manifests. The scanner follows libyaml, whose Go translation reads manifests
 * for the kubelet: verdicts on unusual text (tabs, indentation, keys that span lines) depend on these rules, not on the
 * specification.
 */
export const TOKENS = {
  "version-directive": "a version-directive",
  "tag-directive": "a tag-directive",
  "document-start": "the end of the document",
  "document-end": "the end of the document",
  "stream-end": "the end of the text",
  "block-sequence-start": '"-"',
  "block-mapping-start": "a key",
  "block-end": "less indentation",
  "flow-sequence-start": '"["',
  "flow-sequence-end": '"]"',
  "flow-mapping-start": '"{"',
  "flow-mapping-end": '"}"',
  "block-entry": '"-"',
  "flow-entry": '","',
  key: "a key",
  value: '":"',
  alias: "an alias",
  anchor: "an anchor",
  tag: "a tag",
  scalar: "a value",
} as const;
export type TokenType = keyof typeof TOKENS;

export interface Token {
  type: TokenType;
  start: number;
  end: number;
  /** Text of a scalar; name of an anchor, alias or tag; prefix or version of a directive. */
  value: string;
  /** Handle of a tag or a tag directive; otherwise empty. */
  handle: string;
  /** A scalar that is neither quoted nor a block. */
  plain: boolean;
}

interface SimpleKey {
  possible: boolean;
  required: boolean;
  tokenIndex: number;
  offset: number;
  line: number;
  column: number;
}

/** libyaml's limit of a key, which must be on one line. Unit: characters. */
const MAX_SIMPLE_KEY_LENGTH = 1024;
/** go-yaml's limit of open flow collections and of indentation levels. */
const MAX_DEPTH = 10_000;
/** Hundreds of pods have no more; bounds the memory that a hostile document can take. */
const MAX_TOKENS = 500_000;

const SPACES = / */y;
/** Characters that cannot begin a plain scalar. */
const INDICATORS = new Set([..."-?:,[]{}#&*!|>'\"%@`"].map((character) => character.charCodeAt(0)));
const AFTER_ANCHOR = new Set([..."?:,]}%@`"].map((character) => character.charCodeAt(0)));

export class YamlScanner extends YamlReader {
  readonly tokens: Token[] = [];
  simpleKeyAllowed = true;
  #tokenCount = 0;
  readonly #indents: number[] = [];
  /** One for the block context and one for each open flow collection. */
  readonly #simpleKeys: SimpleKey[] = [noKey()];
  /** The keys that are still possible, by token index. */
  readonly #possibleKeys = new Map<number, SimpleKey>();

  push(type: TokenType, start: number, value = "", handle = "", plain = false): void {
    if (++this.#tokenCount > MAX_TOKENS) this.fail(`the document has more than ${MAX_TOKENS} words and signs`);
    this.tokens.push({ type, start, end: this.position, value, handle, plain });
  }

  /** Appends the next token, and those it implies, to `tokens`. */
  fetchToken(): void {
    this.#skipToNextToken();
    this.#unrollIndent(this.column);
    const code = this.code();
    if (Number.isNaN(code)) return this.#fetchStreamEnd();
    if (this.position === this.lineStart) {
      if (code === 0x25) return this.#fetchDirective();
      if (this.atDocumentIndicator()) return this.#fetchDocumentIndicator(code);
    }
    const start = this.position;
    switch (code) {
      case 0x5b:
        return this.#fetchFlowStart("flow-sequence-start");
      case 0x7b:
        return this.#fetchFlowStart("flow-mapping-start");
      case 0x5d:
        return this.#fetchFlowEnd("flow-sequence-end");
      case 0x7d:
        return this.#fetchFlowEnd("flow-mapping-end");
      case 0x2c:
        this.#removeSimpleKey();
        this.simpleKeyAllowed = true;
        this.position++;
        return this.push("flow-entry", start);
      case 0x2a:
        return this.#fetchAnchor("alias");
      case 0x26:
        return this.#fetchAnchor("anchor");
      case 0x21:
        return this.#fetchTag();
      case 0x27:
      case 0x22:
        this.#saveSimpleKey();
        this.simpleKeyAllowed = false;
        return this.#pushScalar(start, scanQuotedScalar(this, code === 0x27));
    }
    const next = this.code(1);
    if (code === 0x2d && isBlankOrEnd(next)) return this.#fetchBlockEntry();
    if (code === 0x3f && (this.flowLevel > 0 || isBlankOrEnd(next))) return this.#fetchKey();
    if (code === 0x3a && (this.flowLevel > 0 || isBlankOrEnd(next))) return this.#fetchValue();
    if ((code === 0x7c || code === 0x3e) && this.flowLevel === 0) {
      this.#removeSimpleKey();
      this.simpleKeyAllowed = true;
      return this.#pushScalar(start, scanBlockScalar(this, code === 0x7c));
    }
    const startsPlain =
      !(isBlankOrEnd(code) || INDICATORS.has(code)) ||
      (code === 0x2d && !isBlank(next)) ||
      (this.flowLevel === 0 && (code === 0x3f || code === 0x3a) && !isBlankOrEnd(next));
    if (!startsPlain) return this.#failAtCharacter(code);
    this.#saveSimpleKey();
    this.simpleKeyAllowed = false;
    const scalar = scanPlainScalar(this);
    this.#pushScalar(start, scalar, true);
    if (scalar.isFolded) this.simpleKeyAllowed = true;
  }

  #pushScalar(start: number, { value, end }: ScannedScalar, plain = false): void {
    this.push("scalar", start, value, "", plain);
    this.tokens[this.tokens.length - 1]!.end = end;
  }

  #failAtCharacter(code: number): never {
    if (code === 0x09) this.fail(TAB_INDENT);
    if (this.text.startsWith("```", this.position)) this.fail('remove the lines that begin with "```"');
    const character = String.fromCodePoint(this.text.codePointAt(this.position)!);
    this.fail(`a value cannot begin with ${JSON.stringify(character)}: quote it`);
  }

  /** Whether a key may still begin at this token; then the token is not final. */
  mayInsertAt(tokenIndex: number): boolean {
    const key = this.#possibleKeys.get(tokenIndex);
    if (!key) return false;
    if (this.#isStillSimple(key)) return true;
    this.#forgetKey(key);
    return false;
  }

  #forgetKey(key: SimpleKey): void {
    key.possible = false;
    this.#possibleKeys.delete(key.tokenIndex);
  }

  /** Starts the size limit of a new document. */
  resetCount(): void {
    this.#tokenCount = 0;
  }

  /** Forgets the first `count` tokens. */
  dropTokens(count: number): void {
    this.tokens.splice(0, count);
    this.#possibleKeys.clear();
    for (const key of this.#simpleKeys) {
      key.tokenIndex -= count;
      if (key.possible) this.#possibleKeys.set(key.tokenIndex, key);
    }
  }

  #skipToNextToken(): void {
    for (;;) {
      // Only the first character can be a byte order mark; go-yaml treats later ones as letters.
      if (this.position === 0 && this.code() === 0xfeff) this.lineStart = ++this.position;
      this.skip(this.flowLevel > 0 || !this.simpleKeyAllowed ? BLANKS : SPACES);
      if (this.code() === 0x23) this.skip(LINE);
      if (!isBreak(this.code())) return;
      this.readBreak();
      if (this.flowLevel === 0) this.simpleKeyAllowed = true;
    }
  }

  #rollIndent(column: number, type: TokenType, start: number, tokenIndex?: number): void {
    if (this.flowLevel > 0 || this.indent >= column) return;
    this.#indents.push(this.indent);
    this.indent = column;
    if (this.#indents.length > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels of nesting`);
    const token: Token = { type, start, end: start, value: "", handle: "", plain: false };
    if (tokenIndex === undefined) this.tokens.push(token);
    else this.tokens.splice(tokenIndex, 0, token);
  }

  #unrollIndent(column: number): void {
    if (this.flowLevel > 0) return;
    while (this.indent > column) {
      this.push("block-end", this.position);
      this.indent = this.#indents.pop()!;
    }
  }

  #topKey(): SimpleKey {
    return this.#simpleKeys[this.#simpleKeys.length - 1]!;
  }

  #saveSimpleKey(): void {
    if (!this.simpleKeyAllowed) return;
    this.#removeSimpleKey();
    const key: SimpleKey = {
      possible: true,
      required: this.flowLevel === 0 && this.indent === this.column,
      tokenIndex: this.tokens.length,
      offset: this.position,
      line: this.line,
      column: this.column,
    };
    this.#simpleKeys[this.#simpleKeys.length - 1] = key;
    this.#possibleKeys.set(key.tokenIndex, key);
  }

  #removeSimpleKey(): void {
    const key = this.#topKey();
    if (!key.possible) return;
    if (key.required) this.#failForMissingColon(key);
    this.#forgetKey(key);
  }

  #failForMissingColon(key: SimpleKey): never {
    const [line = ""] = this.text.slice(key.offset, key.offset + MAX_SIMPLE_KEY_LENGTH).split("\n", 1);
    if (line.includes("\u00a0")) this.fail("a no-break space (U+00A0) is in this line: write a space", key.offset);
    if (/^(?:<{7}|={7}|>{7})(?:\s|$)/.test(line)) {
      this.fail("this line is a mark of a merge conflict: keep one side, and remove the marks", key.offset);
    }
    this.fail('this line is neither "key: value" nor "- item": a ":" followed by a space is missing', key.offset);
  }

  #fetchStreamEnd(): void {
    // The end counts as a line break: a key that began on the last line is no longer possible.
    this.lineStart = this.position;
    this.line++;
    this.#unrollIndent(-1);
    this.#removeSimpleKey();
    this.simpleKeyAllowed = false;
    this.push("stream-end", this.position);
  }

  #fetchDocumentIndicator(code: number): void {
    this.#unrollIndent(-1);
    this.#removeSimpleKey();
    this.simpleKeyAllowed = false;
    const start = this.position;
    this.position += 3;
    this.push(code === 0x2d ? "document-start" : "document-end", start);
  }

  #fetchFlowStart(type: TokenType): void {
    this.#saveSimpleKey();
    this.#simpleKeys.push(noKey());
    this.flowLevel++;
    if (this.flowLevel > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels of nesting`);
    this.simpleKeyAllowed = true;
    const start = this.position++;
    this.push(type, start);
  }

  #fetchFlowEnd(type: TokenType): void {
    this.#removeSimpleKey();
    if (this.flowLevel > 0) {
      this.flowLevel--;
      this.#simpleKeys.pop();
    }
    this.simpleKeyAllowed = false;
    const start = this.position++;
    this.push(type, start);
  }

  #fetchBlockEntry(): void {
    if (this.flowLevel === 0) {
      if (!this.simpleKeyAllowed) this.fail('a "- item" is not allowed here: begin the list on a line of its own');
      this.#rollIndent(this.column, "block-sequence-start", this.position);
    }
    this.#removeSimpleKey();
    this.simpleKeyAllowed = true;
    const start = this.position++;
    this.push("block-entry", start);
  }

  #fetchKey(): void {
    if (this.flowLevel === 0) {
      if (!this.simpleKeyAllowed) this.fail("a mapping key is not allowed here");
      this.#rollIndent(this.column, "block-mapping-start", this.position);
    }
    this.#removeSimpleKey();
    this.simpleKeyAllowed = this.flowLevel === 0;
    const start = this.position++;
    this.push("key", start);
  }

  #fetchValue(): void {
    const key = this.#topKey();
    const start = this.position;
    if (key.possible && this.#isStillSimple(key)) {
      const token: Token = { type: "key", start: key.offset, end: key.offset, value: "", handle: "", plain: false };
      this.tokens.splice(key.tokenIndex, 0, token);
      this.#rollIndent(key.column, "block-mapping-start", key.offset, key.tokenIndex);
      this.#forgetKey(key);
      this.simpleKeyAllowed = false;
    } else {
      if (this.flowLevel === 0) {
        if (!this.simpleKeyAllowed) this.#failForSecondColon();
        this.#rollIndent(this.column, "block-mapping-start", this.position);
      }
      this.simpleKeyAllowed = this.flowLevel === 0;
    }
    this.position++;
    this.push("value", start);
  }

  #failForSecondColon(): never {
    const last = this.tokens.at(-1);
    if (last?.type === "scalar" && this.text.slice(last.start, last.end).includes("\n")) {
      this.fail('this line continues the one above it: check the indentation, and that a space follows each ":"');
    }
    this.fail('a second ":" is not allowed here: quote the value, leave out the space, or begin a new line');
  }

  #isStillSimple(key: SimpleKey): boolean {
    if (key.line === this.line && this.position - key.offset <= MAX_SIMPLE_KEY_LENGTH) return true;
    if (key.required) this.#failForMissingColon(key);
    return false;
  }

  #fetchAnchor(type: "anchor" | "alias"): void {
    this.#saveSimpleKey();
    this.simpleKeyAllowed = false;
    const start = this.position++;
    const name = this.take(/[\w-]*/y);
    if (name === "" || !(isBlankOrEnd(this.code()) || AFTER_ANCHOR.has(this.code()))) {
      const sign = type === "anchor" ? "&" : "*";
      this.fail(
        `"${sign}" begins ${type === "anchor" ? "an anchor" : "an alias"}: quote the value if none is meant`,
        start,
      );
    }
    this.push(type, start, name);
  }

  #fetchTag(): void {
    this.#saveSimpleKey();
    this.simpleKeyAllowed = false;
    const start = this.position;
    let handle = "";
    let suffix: string;
    if (this.code(1) === 0x3c) {
      this.position += 2;
      suffix = this.#scanTagUri(start, false);
      if (this.code() !== 0x3e) this.fail('the tag lacks its ">"', start);
      this.position++;
    } else {
      handle = this.take(/!(?:[\w-]*!)?/y);
      suffix = this.#scanTagUri(start, handle === "!");
      if (suffix === "" && handle === "!") [handle, suffix] = ["", "!"];
    }
    if (!isBlankOrEnd(this.code())) this.fail('"!" begins a tag: quote the value if none is meant', start);
    this.push("tag", start, suffix, handle);
  }

  #scanTagUri(start: number, mayBeEmpty: boolean): string {
    const uri = this.take(/(?:[\w\-;/?:@&=+$,.!~*'()[\]]|%[0-9A-Fa-f]{2})*/y);
    if (uri === "" && !mayBeEmpty) this.fail('"!" begins a tag: quote the value if none is meant', start);
    try {
      return decodeURIComponent(uri);
    } catch {
      this.fail("the tag has a %-escape that is not UTF-8", start);
    }
  }

  #fetchDirective(): void {
    this.#unrollIndent(-1);
    this.#removeSimpleKey();
    this.simpleKeyAllowed = false;
    const start = this.position;
    const rest = this.take(LINE);
    const version = /^%YAML[ \t]+(\d{1,9})\.(\d{1,9})[ \t]*(?:#.*)?$/.exec(rest);
    const tag = TAG_DIRECTIVE.exec(rest);
    if (!version && !tag) this.fail('a line that begins with "%" must be a %YAML or %TAG directive', start);
    if (tag) this.push("tag-directive", start, tag[2], tag[1]);
    else this.push("version-directive", start, version!.slice(1).map(Number).join("."));
  }
}

/** The prefix must be a URI. */
const TAG_DIRECTIVE = /^%TAG[ \t]+(![\w-]*!|!)[ \t]+((?:[\w\-;/?:@&=+$,.!~*'()[\]]|%[0-9A-Fa-f]{2})+)[ \t]*(?:#.*)?$/;

const noKey = (): SimpleKey => ({ possible: false, required: false, tokenIndex: 0, offset: 0, line: 0, column: 0 });
