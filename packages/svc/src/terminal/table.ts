/**
 * Formats rows as lines with aligned columns. Control characters are removed, because the texts
 * come from the server.
 */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const clean = rows.map((row) => row.map(printable));
  const widths = (clean[0] ?? []).map((_cell, column) =>
    Math.max(...clean.map((row) => row[column]?.length ?? 0)),
  );
  return clean.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Removes the characters of a text that could control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '');
}

const two = (value: number) => String(value).padStart(2, '0');

/** Formats a time as local date and time, to the minute: `2026-11-26 08:00`. */
export function localTime(moment: Date): string {
  const date = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join('-');
  return `${date} ${two(moment.getHours())}:${two(moment.getMinutes())}`;
}

/** Formats a time as local date and time, to the second: `2026-11-26 08:00:00`. */
export function localSecond(moment: Date): string {
  return `${localTime(moment)}:${two(moment.getSeconds())}`;
}
