import type { AuditClass } from '#domain/audit/audit-event.js';
import { isOver, keepEvents, readMonth } from '#domain/audit/archive/archived-events.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import type { S3Server } from '#platform/object-store/s3-client.js';
import { fileCopy, objectCopy, type ArchiveCopy } from './archive-copy.js';
import { compare } from './archive-file.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The place of an object that the command line names as `s3://BUCKET/KEY`. */
export interface NamedObject {
  readonly bucket: string;
  readonly key: string;
}

/** A copy of a month of the audit log that the command line requests. */
export interface ArchiveCommand {
  readonly name: 'archive';
  readonly class: AuditClass;
  /** The month in UTC, such as `2026-01`. */
  readonly month: string;
  /** The path of the file, or the place of the object. */
  readonly to: string | NamedObject;
  readonly json: boolean;
}

/** The surroundings of the command: its terminal, and the object store. */
interface ArchiveSurroundings {
  readonly terminal: { readonly print: (line: string) => void };
  /** The server of the object store. */
  readonly server: S3Server;
}

/**
 * Copies the events of a month into a file or into an object of a store, and reads the copy back. A
 * copy that is there already is compared only. A command that was killed goes on where its copy
 * ends.
 *
 * @throws Error if the month is not over, or if the copy differs from the log
 * @throws ObjectStoreError if the store refuses a request
 */
export async function archive(
  command: ArchiveCommand,
  dataSource: DataSource,
  { terminal, server }: ArchiveSurroundings,
): Promise<void> {
  const { class: ofClass, month, to, json } = command;
  const [copy, name] =
    typeof to === 'string'
      ? [await fileCopy(to), to]
      : [await objectCopy({ ...server, ...to }), `s3://${to.bucket}/${to.key}`];
  const summary = await withTransactionRetry(dataSource, async (tx) => {
    if (!(await isOver(tx, command))) throw new Error(`The month ${month} is not over yet.`);
    if (!(await keepEvents(tx))) throw new Error('A clean-up runs: try again in a minute.');
    return writeAndCompare(tx, command, copy);
  });
  const manifest = { class: ofClass, month, ...summary };
  await copy.writeManifest(`${JSON.stringify(manifest, undefined, 2)}\n`);
  if (json) {
    terminal.print(JSON.stringify({ command: 'archive', file: name, ...manifest }, undefined, 2));
    return;
  }
  terminal.print(
    `${name}: ${summary.rows} events, ${summary.bytes} bytes, SHA-256 ${summary.sha256}`,
  );
  terminal.print('Each line was read back and is in the log.');
}

async function writeAndCompare(tx: EntityManager, command: ArchiveCommand, copy: ArchiveCopy) {
  if (!(await copy.isThere())) await copy.write((place) => readMonth(tx, command, place));
  const summary = await compare(copy.read(), readMonth(tx, command, FIRST_PLACE));
  if (typeof summary === 'number') {
    throw new Error(
      `${copy.name} differs from the log in line ${summary}. If the clean-up has deleted events since, keep the file. ` +
        'Otherwise delete it, and run the command again.',
    );
  }
  await copy.finish();
  return summary;
}
