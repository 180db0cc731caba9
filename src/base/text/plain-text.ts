// ESC [ … letter; ESC ] … BEL or ESC \ (titles, links); other two-byte escapes.
const ESCAPES = /\x1b(?:\[[0-9;?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
// C0 and C1 controls except tab and line feed, and the marks that reorder text.
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** A text of a program without terminal escapes, control characters and marks that reorder it; tabs and line feeds stay. */
export const toPlainText = (text: string): string =>
  text
    .replace(ESCAPES, "")
    .replace(/\r+(?=[^\r\n])/g, " ")
    .replace(CONTROLS, "");
