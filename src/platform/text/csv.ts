/** Matches the beginning of a cell that a spreadsheet would compute as a formula. */
const FORMULA = /^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/;

/**
 * Matches the places within a cell after which a formula would begin in a spreadsheet that splits
 * lines at semicolons. Such a spreadsheet does not see the quotation marks around the cell.
 */
const DIVIDED = /(;|(?<=\S)[\r\n]+)(?=\s*[=+\-@＝＋－＠])/g;

/** Writes the cells of a line of a table (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * Writes a cell in quotation marks. An apostrophe goes before a text that a spreadsheet would
 * compute as a formula.
 */
export function csvCell(text: string): string {
  const divided = text.replaceAll(DIVIDED, "$1'");
  const safe = FORMULA.test(text) ? `'${divided}` : divided;
  return `"${safe.replaceAll('"', '""')}"`;
}
