import type { AuditClass } from '#domain/audit/audit-event.js';
import { isOver, keepEvents, readMonth } from '#domain/audit/archive/archived-events.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { append, compareFile, continueAfter, finish, isThere, writeWhole } from './archive-file.js';

/** A copy of a month of the audit log that the command line requests. */
export interface ArchiveCommand {
  readonly name: 'archive';
  readonly class: AuditClass;
  /** The month in UTC, such as `2026-01`. */
  readonly month: string;
  /** The path of the file. */
  readonly to: string;
  readonly json: boolean;
}

/**
 * Copies the events of a month into a file, and reads the file back. A file that is there already
 * is compared only. The file of a command that was killed goes on where it ends.
 *
 * @throws Error if the month is not over, or if the file differs from the log
 */
export async function archive(
  command: ArchiveCommand,
  dataSource: DataSource,
  terminal: { readonly print: (line: string) => void },
): Promise<void> {
  const { class: ofClass, month, to, json } = command;
  const summary = await dataSource.transaction(async (tx) => {
    if (!(await isOver(tx, command))) throw new Error(`The month ${month} is not over yet.`);
    if (!(await keepEvents(tx))) throw new Error('A clean-up runs: try again in a minute.');
    return writeAndCompare(tx, command);
  });
  const manifest = { class: ofClass, month, ...summary };
  await writeWhole(`${to}.manifest.json`, `${JSON.stringify(manifest, undefined, 2)}\n`);
  if (json) {
    terminal.print(JSON.stringify({ command: 'archive', file: to, ...manifest }, undefined, 2));
    return;
  }
  terminal.print(
    `${to}: ${summary.rows} events, ${summary.bytes} bytes, SHA-256 ${summary.sha256}`,
  );
  terminal.print('Each line was read back and is in the log.');
}

async function writeAndCompare(tx: EntityManager, command: ArchiveCommand) {
  const { to } = command;
  const isNew = !(await isThere(to));
  const path = isNew ? `${to}.part` : to;
  if (isNew) await append(path, readMonth(tx, command, await continueAfter(path)));
  const summary = await compareFile(path, readMonth(tx, command, FIRST_PLACE));
  if (typeof summary === 'number') {
    throw new Error(
      `${path} differs from the log in line ${summary}. If the clean-up has deleted events since, keep the file. ` +
        'Otherwise delete it, and run the command again.',
    );
  }
  if (isNew) await finish(path, to);
  return summary;
}
