import type { AuditClass } from '#domain/audit/audit-event.js';
import { isOver, keepEvents, readMonth } from '#domain/audit/archive/archived-events.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import type { S3Server } from '#platform/object-store/s3-client.js';
import { fileCopy, objectCopy, type ArchiveCopy } from './archive-copy.js';
import { compare } from './archive-file.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** An object of an object store, which the command line names as `s3://BUCKET/KEY`. */
export interface NamedObject {
  readonly bucket: string;
  readonly key: string;
}

/** The parsed command `archive`, which copies one month of the audit log. */
export interface ArchiveCommand {
  readonly name: 'archive';
  readonly class: AuditClass;
  /** The month in UTC, such as `2026-01`. */
  readonly month: string;
  /** The destination of the copy: the path of a file, or an object of an object store. */
  readonly to: string | NamedObject;
  readonly json: boolean;
}

/** The terminal and the object store that the command `archive` uses. */
interface ArchiveSurroundings {
  readonly terminal: { readonly print: (line: string) => void };
  /** The server of the object store. */
  readonly server: S3Server;
}

/**
 * Copies the events of one month of the audit log into a file or an object, reads the copy back,
 * and compares it with the log. A copy that exists already is only compared. After an interruption,
 * the next call continues the same copy.
 *
 * @throws Error if the month ended less than 2 minutes ago or is not over, if the clean-up of old
 *   events runs, or if the copy differs from the log
 * @throws ObjectStoreError if the object store refuses a request
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
    if (!(await isOver(tx, command))) {
      throw new Error(`The month ${month} is not over yet, or ended less than 2 minutes ago.`);
    }
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
