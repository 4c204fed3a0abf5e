/** Matches the beginning of a cell that a spreadsheet would compute as a formula. */
const FORMULA = /^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/;

/**
 * Matches the places inside a cell at which a formula could begin. Some spreadsheets split lines at
 * semicolons and ignore the quotation marks around the cell, so a formula may follow a semicolon or
 * a line break.
 */
const DIVIDED = /(;|(?<=\S)[\r\n]+)(?=\s*[=+\-@＝＋－＠])/g;

/** Returns a line of CSV with the given cells (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * Returns a cell in quotation marks. An apostrophe is put before a text that a spreadsheet would
 * compute as a formula.
 */
export function csvCell(text: string): string {
  const divided = text.replaceAll(DIVIDED, "$1'");
  const safe = FORMULA.test(text) ? `'${divided}` : divided;
  return `"${safe.replaceAll('"', '""')}"`;
}
