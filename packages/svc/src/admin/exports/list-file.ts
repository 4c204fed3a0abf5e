import { lstatSync } from 'node:fs';
import type { ArgumentNames } from '@svc/arguments';
import { fileFailure, isMissing } from '../../files/private-folder.js';
import { NewFile } from '../../files/new-file.js';
import { sleep } from '../../program/clock.js';
import type { ParsedArguments } from '../../program/arguments.js';
import { CliFailure, STATUS, usageFailure } from '../../program/failure.js';
import { OutputFailure, type Terminal } from '../../terminal/terminal.js';
import { withQuery, type AdminClient } from '../acts/admin-client.js';
import { WholeLines, type FileFormat } from './whole-lines.js';

/** A list of the API that can become a file. */
export interface FileList {
  readonly path: string;
  /** The word for its items, such as `Members`. */
  readonly items: string;
  /**
   * Returns the cursor of the API that continues the list after a line, from the fields of the
   * line.
   */
  readonly placeOf: (fields: Readonly<Record<string, string>>) => string;
}

/** The options that write a list to a file or to standard output, in place of a page of it. */
export const FILE_OPTIONS = ['format', 'output'] as const;

/** The usage of {@link FILE_OPTIONS}. */
export const FILE_FORM = '[--format csv|ndjson [--output FILE]]';

/** The media type with which the server must answer, for each format. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
} satisfies Record<FileFormat, string>;

/**
 * The largest number of repeated attempts in a row that bring no new line; then the command gives
 * up.
 */
const MOST_ATTEMPTS = 5;

/**
 * The milliseconds by which the pause before an attempt grows with each attempt that brought no new
 * line.
 */
const PAUSE = 1_000;

/** The exit statuses after a signal: 128 plus the number of the signal. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

/** Adds the options that make a file of a list to the other options of the list. */
export function withFileOptions(names: ArgumentNames): ArgumentNames {
  return { ...names, values: [...(names.values ?? []), ...FILE_OPTIONS] };
}

/**
 * Makes a file of a list, if `--format` asks for one.
 *
 * @param query the filters of the list, as parameters of the API
 * @returns false if the options ask for no file
 * @throws CliFailure with status 2 for options that do not go together
 */
export async function wroteFile(
  admin: AdminClient,
  options: ParsedArguments,
  list: FileList,
  query: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const format = formatOf(options, admin.terminal);
  if (format === undefined) return false;
  const asked = { list, format, query };
  const output = options.value('output');
  if (output === undefined) await writeToOutput(admin, asked);
  else await writeToFile(admin, asked, output);
  return true;
}

/** The file that the user asked for: its list, its format, and the filters of the list. */
interface AskedFile {
  readonly list: FileList;
  readonly format: FileFormat;
  readonly query: Readonly<Record<string, string | undefined>>;
}

/** Receives the parts of a file, one after the other. */
type Sink = (part: string) => void;

function formatOf(options: ParsedArguments, { isJson }: Terminal): FileFormat | undefined {
  const [format, output] = [options.value('format'), options.value('output')];
  if (format === undefined) {
    if (output !== undefined) throw usageFailure('--output needs --format.', FILE_FORM);
    return undefined;
  }
  if (format !== 'csv' && format !== 'ndjson') {
    throw usageFailure(`--format ${format} is not known.`, FILE_FORM);
  }
  if (options.value('limit') !== undefined) {
    throw usageFailure('--limit does not go with --format: a file has everyone.', FILE_FORM);
  }
  if (isJson && output === undefined) {
    throw usageFailure('--json and --format go together only with --output.', FILE_FORM);
  }
  return format;
}

/**
 * Writes the lines of a list to standard output.
 * @throws CliFailure with the option that continues after the last line
 */
async function writeToOutput(admin: AdminClient, asked: AskedFile): Promise<void> {
  const state = startOf(asked);
  try {
    await copyList(admin, asked, state, (part) => admin.terminal.answer(part));
  } catch (error) {
    throw withPlace(error, state);
  }
}

/**
 * Writes a file. It gets its name only when it is whole, and the mode 0600 because it has personal
 * data.
 */
async function writeToFile(admin: AdminClient, asked: AskedFile, path: string): Promise<void> {
  const file = newFile(path);
  const abandon = () => file.discard();
  process.once('exit', abandon);
  for (const [signal, status] of Object.entries(SIGNALS)) {
    process.once(signal, () => process.exit(status));
  }
  try {
    const state = startOf(asked);
    await copyList(admin, asked, state, (part) => file.write(part));
    file.finish();
    const { format, list } = asked;
    const document = { file: path, format, lines: state.lines };
    admin.terminal.result(document, [`${list.items} in ${path}: ${state.lines}.`]);
  } catch (error) {
    file.discard();
    throw error instanceof CliFailure ? error : fileFailure(path, error);
  } finally {
    process.off('exit', abandon);
  }
}

function newFile(path: string): NewFile {
  try {
    if (!isPlainFile(path)) throw usageFailure(`${path} is no plain file.`, FILE_FORM);
    return new NewFile(path, 0o600);
  } catch (error) {
    throw error instanceof CliFailure ? error : fileFailure(path, error);
  }
}

/**
 * Returns true if a path is a regular file or does not exist. Anything else, such as a device, must
 * not be replaced.
 */
function isPlainFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

/**
 * The progress of a copy: the number of lines, the cursor after the last line (`place`), and the
 * header line of CSV.
 */
interface CopyState {
  lines: number;
  place: string | undefined;
  header: string | undefined;
}

function startOf({ query }: AskedFile): CopyState {
  return { lines: 0, place: query['after'], header: undefined };
}

/**
 * Copies all lines of a list. If the connection ends early, another request continues after the
 * last whole line. The copy fails after several attempts in a row without a new line.
 */
async function copyList(
  admin: AdminClient,
  asked: AskedFile,
  state: CopyState,
  sink: Sink,
): Promise<void> {
  for (let attempts = 0; ; attempts += 1) {
    const before = state.lines;
    try {
      await copyOnce(admin, asked, state, sink);
      return;
    } catch (error) {
      if (state.lines > before) attempts = 0;
      if (!isEarlyEnd(error, state) || attempts >= MOST_ATTEMPTS) throw error;
      admin.terminal.warn(
        `svc: The answer was cut off after line ${state.lines}. It goes on there.`,
      );
      await sleep(attempts * PAUSE);
    }
  }
}

/** The failure if the connection ends in the middle of an answer. */
class EarlyEnd extends CliFailure {
  constructor(cause?: unknown) {
    const whatToDo = 'Check the network, and run the command again.';
    super('The answer of the server is not whole.', whatToDo, STATUS.failed, { cause });
  }
}

/**
 * The failure if an answer has another format or other columns, so that a repeated request does not
 * help.
 */
class WrongAnswer extends CliFailure {}

/** Returns true for a failure after which another request can bring further lines. */
function isEarlyEnd(error: unknown, { lines }: CopyState): boolean {
  if (error instanceof EarlyEnd) return true;
  if (!(error instanceof CliFailure)) return false;
  if (error instanceof WrongAnswer || error instanceof OutputFailure) return false;
  return error.status === STATUS.failed && lines > 0;
}

function withPlace(error: unknown, { lines, place }: CopyState): unknown {
  if (!(error instanceof CliFailure) || place === undefined || lines === 0) return error;
  const goOn = `The output ends after line ${lines}. Go on with: --after ${place}`;
  const whatToDo = error.whatToDo === '' ? goOn : `${error.whatToDo}\n${goOn}`;
  return new CliFailure(error.message, whatToDo, error.status, { cause: error });
}

async function copyOnce(
  admin: AdminClient,
  { list, format, query }: AskedFile,
  state: CopyState,
  sink: Sink,
): Promise<void> {
  const to = withQuery(list.path, { ...query, format, after: state.place });
  const { headers, parts } = await admin.request('GET', to, { isStreamed: true });
  if (!headers.get('content-type')?.startsWith(MEDIA_TYPES[format] ?? '') || !parts) {
    for await (const _ of parts ?? []) break; // leaving the loop closes the connection
    throw new WrongAnswer(`The answer of the server is not ${format}.`, 'Run: svc doctor');
  }
  const lines = new WholeLines(format);
  for await (const part of textsOf(parts)) {
    const earlier = lines.count;
    const whole = lines.add(part);
    sink(headerFor(lines, state) + whole);
    state.lines += lines.count - earlier;
    const fields = lines.lastFields();
    if (fields) state.place = list.placeOf(fields);
  }
  if (!lines.isWhole) throw new EarlyEnd();
}

/**
 * Returns the header line of CSV the first time that it arrives, and an empty text otherwise.
 * @throws CliFailure if a later answer has other columns
 */
function headerFor({ header }: WholeLines, state: CopyState): string {
  if (header === undefined || header === state.header) return '';
  if (state.header !== undefined) {
    throw new WrongAnswer('The server has changed the columns.', 'Run the command again.');
  }
  state.header = header;
  return header;
}

/**
 * Decodes the parts of an answer.
 *
 * @throws EarlyEnd if the connection ends early
 */
async function* textsOf(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const iterator = parts[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await iterator.next().catch((error: unknown) => {
      throw new EarlyEnd(error);
    });
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}
