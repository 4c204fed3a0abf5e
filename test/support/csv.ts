/** Parses CSV (RFC 4180). Returns the lines, each as a list of its cells. */
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

/**
 * Parses CSV with a header line. Returns an object for each further line; the header line has the
 * names of the properties.
 */
export function recordsOf(csv: string): Record<string, string>[] {
  const [names = [], ...lines] = cellsOf(csv);
  return lines.map((line) => Object.fromEntries(line.map((cell, n) => [names[n] ?? '', cell])));
}
