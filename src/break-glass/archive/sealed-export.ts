import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FIRST_LEAF, sealedParts, type AdminRead } from '#domain/admin/audit-search/sealed-log.js';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import type { ExportFacts } from '#domain/audit/sealed-export/sealed-export.js';
import { systemClock } from '#platform/clock/clock.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';

/**
 * The parsed command `sealed-export`, which writes the leaves of the Merkle tree that seals the
 * audit events without an organization.
 */
export interface SealedExportCommand {
  readonly name: 'sealed-export';
  /** The path of the new file. */
  readonly to: string;
  readonly json: boolean;
}

/**
 * Writes the sealed export of the deployment into a new file, for `svc audit verify`. Its leaves
 * are the events without an organization and the checkpoints of organizations, which no admin of an
 * organization can read.
 *
 * @param retention the days for which events of each class are kept, so that `svc audit verify` can
 *   tell why old events are missing
 * @throws Error if the file exists or cannot be written
 */
export async function sealedExport(
  { to, json }: SealedExportCommand,
  dataSource: DataSource,
  retention: ExportFacts['retention'],
  terminal: { readonly print: (line: string) => void },
): Promise<void> {
  const facts = { at: systemClock.now().toISOString(), retention };
  const read: AdminRead = (work) => withTransactionRetry(dataSource, work);
  const parts = await sealedParts(read, DEPLOYMENT, FIRST_LEAF, facts);
  let count = 0;
  await pipeline(
    Readable.from(parts),
    async function* lines(chunks: AsyncIterable<readonly string[]>) {
      for await (const chunk of chunks) {
        count += chunk.length;
        for (const line of chunk) yield `${line}\n`;
      }
    },
    createWriteStream(to, { flags: 'wx', mode: 0o600 }),
  );
  const document = { command: 'sealed-export', file: to, lines: count };
  terminal.print(json ? JSON.stringify(document, undefined, 2) : `${to}: ${count} lines`);
}
