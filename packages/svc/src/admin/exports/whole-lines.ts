/** The formats of a file that the API sends. */
export type FileFormat = 'csv' | 'ndjson';

/** The fields of a line by their names, as texts. */
type Fields = Readonly<Record<string, string>>;

/**
 * Divides the text of an answer into whole lines. A line of CSV may have line breaks inside its
 * quotation marks (RFC 4180 §2).
 */
export class WholeLines {
  #rest = '';
  #isQuoted = false;
  #examined = 0;
  #last = '';
  #header: string | undefined;
  /** The number of lines, without the line that names the columns of CSV. */
  count = 0;

  constructor(private readonly format: FileFormat) {}

  /** The line that names the columns of CSV; undefined before it has arrived, and for NDJSON. */
  get header(): string | undefined {
    return this.#header;
  }

  /**
   * True if the text ends with a whole line, and, for CSV, has the line with the names of columns.
   */
  get isWhole(): boolean {
    return this.#rest === '' && (this.format === 'ndjson' || this.#header !== undefined);
  }

  /** Adds a part of the text, and returns the lines that are whole now, without the header. */
  add(part: string): string {
    this.#rest += part;
    let [begin, start] = [0, 0];
    for (; this.#examined < this.#rest.length; this.#examined += 1) {
      const character = this.#rest[this.#examined];
      if (character === '"' && this.format === 'csv') this.#isQuoted = !this.#isQuoted;
      if (character !== '\n' || this.#isQuoted) continue;
      const end = this.#examined + 1;
      if (this.format === 'csv' && this.#header === undefined) {
        this.#header = this.#rest.slice(0, end);
        begin = end;
      } else {
        this.#last = this.#rest.slice(start, end);
        this.count += 1;
      }
      start = end;
    }
    const whole = this.#rest.slice(begin, start);
    this.#rest = this.#rest.slice(start);
    this.#examined -= start;
    return whole;
  }

  /** Returns the fields of the last whole line; undefined if there is none. */
  lastFields(): Fields | undefined {
    if (this.#last === '') return undefined;
    if (this.format === 'ndjson') return JSON.parse(this.#last) as Fields;
    const cells = [...this.#last.matchAll(/"((?:[^"]|"")*)"/g)].map(([, cell = '']) =>
      cell.replaceAll('""', '"'),
    );
    const names = (this.#header ?? '').trim().split(',');
    return Object.fromEntries(names.map((name, column) => [name, cells[column] ?? '']));
  }
}
