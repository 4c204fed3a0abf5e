/** Matches the beginning of a cell that a spreadsheet would compute as a formula. */
const FORMULA = /^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/;

/**
 * Matches the places inside a cell at which a formula could begin. Some spreadsheets split lines at
 * semicolons and ignore the quotation marks around the cell, so a formula may follow a semicolon or
 * a line break.
 */
const DIVIDED = /(;|(?<=\S)[\r\n]+)(?=\s*[=+\-@＝＋－＠])/g;

/** Returns a line of CSV with the given cells (RFC 4180), including the line break at its end. */
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

/** The columns of a table of CSV, each with the function that returns its value in a row. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | null>>;

/**
 * Returns two parts of a CSV table: the first line, which names the columns, and a function that
 * returns the line of a row. A null becomes an empty cell.
 */
export function csvTable<Row>(columns: CsvColumns<Row>): {
  readonly header: string;
  readonly lineOf: (row: Row) => string;
} {
  const values = Object.values(columns);
  return {
    header: `${Object.keys(columns).join(',')}\r\n`,
    lineOf: (row) => csvLine(values.map((valueOf) => valueOf(row) ?? '')),
  };
}

/**
 * Returns the columns of a table that has JSON objects as its rows: the members with the given
 * names. A cell has the text of its value. The items of a list are separated by commas, and an item
 * that is null is `unknown`.
 */
export function columnsOfJson(names: readonly string[]): CsvColumns<object> {
  return Object.fromEntries(
    names.map((name) => [name, (row: object) => textOf((row as Record<string, unknown>)[name])]),
  );
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((item) => textOf(item) ?? 'unknown').join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
