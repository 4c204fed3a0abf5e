import { createReadStream } from 'node:fs';
import { parseArguments } from '../program/arguments.js';
import { now } from '../program/clock.js';
import { CliFailure, errorCode, STATUS, usageFailure } from '../program/failure.js';
import { fileReason } from '../program/system-errors.js';
import type { Terminal } from '../terminal/terminal.js';
import { ExportCheck, type Beginning, type ExportFinding } from './export-check.js';
import { readCheckpoints, readVerifiers } from './signed-note.js';

/**
 * The largest number of findings that are printed as lines. `--json` prints every finding that was
 * kept.
 */
const PRINTED = 100;

/**
 * The largest number of bytes of a line. A line of the server is far shorter, and a file without
 * line breaks would otherwise be read into memory as one line.
 */
const LONGEST_LINE = 16 * 2 ** 20;

const OPTIONS = { values: ['checkpoint', 'key', 'retention-days', 'from'], positionals: 1 };

/**
 * `svc audit verify`: checks a sealed export against checkpoints, line by line.
 * @returns the exit status: 0 if the export is whole and proven, 1 otherwise
 */
export async function verify(
  args: readonly string[],
  terminal: Terminal,
  usage: string,
): Promise<number> {
  const options = parseArguments(args, OPTIONS, usage);
  const [path] = options.positionals;
  const file = options.value('checkpoint');
  if (path === undefined || file === undefined) {
    throw usageFailure('The export or --checkpoint is missing.', usage);
  }
  const days = options.value('retention-days');
  if (days !== undefined && !/^\d{1,6}$/.test(days)) {
    throw usageFailure('--retention-days needs a number of days.', usage);
  }
  const key = options.value('key');
  const keys = key === undefined ? [] : readVerifiers(key);
  const retention = days === undefined ? undefined : Number(days);
  const from = beginningOf(options.value('from'), usage);
  const check = new ExportCheck(readCheckpoints(file), keys, now(), retention, from);
  await readLines(path, check);
  check.end();
  return report(check, keys.length > 0, terminal);
}

/**
 * Reads the value of `--from`, which is a position as the server takes it in `after`: the epoch,
 * and the number of the leaf before the export.
 *
 * @returns the leaf with which such an export begins
 * @throws CliFailure with status 2 for another text
 */
function beginningOf(text: string | undefined, usage: string): Beginning | undefined {
  if (text === undefined) return undefined;
  const [, epoch, index] = /^(\d{1,18})\.(\d{1,15})$/.exec(text) ?? [];
  if (epoch === undefined) {
    throw usageFailure('--from needs an epoch and a number of a leaf, such as 0.100.', usage);
  }
  return { epoch, index: Number(index) + 1 };
}

/**
 * Gives each line of an export to a check. Only one chunk of the file is in memory, with the
 * beginning of a line from the chunk before.
 */
async function readLines(path: string, check: ExportCheck): Promise<void> {
  const stream = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 1 << 20 });
  let rest: Buffer = Buffer.alloc(0);
  let number = 0;
  const take = (line: Buffer) => {
    number += 1;
    if (line.length > 0) check.line(line);
  };
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let to = bytes.indexOf(10); to >= 0; to = bytes.indexOf(10, from)) {
        take(bytes.subarray(from, to));
        from = to + 1;
      }
      rest = bytes.subarray(from);
      if (rest.length > LONGEST_LINE) {
        number += 1;
        throw new RangeError(`longer than ${LONGEST_LINE / 2 ** 20} MiB`);
      }
    }
    take(rest);
  } catch (error) {
    if (error instanceof RangeError) {
      const whatToDo = 'Export with order=asc&format=sealed, and give the whole file.';
      throw new CliFailure(`Line ${number} of ${path} is ${error.message}.`, whatToDo);
    }
    if (errorCode(error) === undefined) throw error;
    const message = `${path} cannot be read: ${fileReason(error)}.`;
    throw new CliFailure(message, 'Name the file of an export.');
  }
}

/** Prints the result of a check, and returns the exit status. */
function report(check: ExportCheck, isSigned: boolean, terminal: Terminal): number {
  const { findings, counts, provenAt, begins } = check;
  const isProven = provenAt !== '';
  const isWhole = counts.faults === 0 && isProven;
  const document = {
    whole: isWhole,
    rows: counts.rows,
    removed_by_retention: counts.expired,
    not_proven: counts.unproven,
    begins: begins ?? null,
    proven_until: isProven ? provenAt : null,
    signatures_checked: isSigned,
    faults: counts.faults,
    findings,
  };
  const facts = [
    `${counts.rows} rows read, ${counts.expired} gone by retention.`,
    ...(begins && begins.index > 0
      ? [
          `The export begins with leaf ${begins.index} of epoch ${begins.epoch}: no row before it was checked.`,
        ]
      : []),
    ...(counts.unproven > 0 ? [`${counts.unproven} leaves are not proven by a checkpoint.`] : []),
    ...(isSigned ? [] : ['Signatures were not checked: give the key of the seal by --key.']),
  ];
  const verdict = isWhole
    ? `Whole and unaltered until ${provenAt}.`
    : isProven || counts.faults > 0
      ? `${counts.faults} faults:`
      : 'No checkpoint of the file proves this export.';
  const lines = findings.slice(0, PRINTED).map(lineOf);
  const more = counts.faults - lines.length;
  terminal.result(document, [
    verdict,
    ...lines,
    ...(more > 0 ? [`… and ${more} more.`] : []),
    ...facts,
  ]);
  return isWhole ? 0 : STATUS.failed;
}

function lineOf({ fault, epoch, id, index, detail }: ExportFinding): string {
  const leaf = index === undefined ? '' : ` (leaf ${index} of epoch ${epoch})`;
  return `${fault}: ${id ?? 'unknown'}${leaf}: ${detail}`;
}
