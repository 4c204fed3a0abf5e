/** Reads a table as RFC 4180 writes it. */
export function cellsOf(csv: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    line.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    lines.push(line);
    line = [];
  }
  return lines;
}

/** Reads a table with a line of names as objects, whose members have the names of the columns. */
export function recordsOf(csv: string): Record<string, string>[] {
  const [names = [], ...lines] = cellsOf(csv);
  return lines.map((line) => Object.fromEntries(line.map((cell, n) => [names[n] ?? '', cell])));
}
