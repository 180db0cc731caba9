/** What libyaml takes for white space. All of them take a UTF-16 code; NaN is the end of the text. */
export const isBlank = (code: number) => code === 0x20 || code === 0x09;
export const isBreak = (code: number) =>
  code === 0x0a || code === 0x0d || code === 0x85 || code === 0x2028 || code === 0x2029;
export const isBlankOrEnd = (code: number) => isBlank(code) || isBreak(code) || Number.isNaN(code);
