import type { AuditRow } from '#domain/audit/audit-filter.js';

/** The columns of an export, with the value of an event in each. */
const COLUMNS: Readonly<Record<string, (row: AuditRow) => string | null>> = {
  time: (row) => row.createdAt.toISOString(),
  type: (row) => row.type,
  class: (row) => row.class,
  actor: (row) => row.actorEmail,
  subject: (row) => row.subjectEmail,
  application: (row) => row.clientName,
  address: (row) => row.ip,
  browser: (row) => row.userAgent,
  request_id: (row) => row.requestId,
  id: (row) => row.id,
  actor_id: (row) => row.actorId,
  subject_id: (row) => row.subjectId,
  details: (row) => JSON.stringify(row.details),
};

/** Matches the beginning of a cell that a spreadsheet would compute. */
const FORMULA = /^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/;

/**
 * Matches the places within a cell after which a formula would begin in a spreadsheet that splits
 * lines at semicolons. Such a spreadsheet does not see the quotation marks around the cell.
 */
const DIVIDED = /(;|(?<=\S)[\r\n]+)(?=\s*[=+\-@＝＋－＠])/g;

/** The first line of a table of events (RFC 4180). */
export const CSV_HEADER = `${Object.keys(COLUMNS).join(',')}\r\n`;

/** Writes an event as a line of a table (RFC 4180). */
export function csvLine(row: AuditRow): string {
  const cells = Object.values(COLUMNS).map((valueOf) => csvCell(valueOf(row) ?? ''));
  return `${cells.join(',')}\r\n`;
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
