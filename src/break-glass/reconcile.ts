import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { countOnRecord } from '#domain/admin/database-failover/by-operator/on-record.repository.js';
import { reconcileNow } from '#domain/admin/database-failover/by-operator/reconcile-now.js';
import { operatorDetails, type MachineOperator } from '#domain/admin/operator-access/operator.js';
import { sealGaps, type SealGap } from '#domain/audit/sealed-export/seal-state.repository.js';
import type { InstalledDatabase } from '#platform/database/installed-database.js';
import { Refused } from './act.js';
import type { GlassCommand } from './arguments.js';
import type { OperatorTerminal } from './operator/terminal.js';
import { endedText } from './text.js';

/** The objects that the command `reconcile` needs. */
export interface ReconcileParts {
  readonly database: InstalledDatabase;
  readonly terminal: OperatorTerminal;
  readonly operator: MachineOperator;
  readonly log: Logger;
}

/** The word that the operator types to confirm the command. */
const WORD = 'reconcile';

/**
 * Ends all access that is stored in the database: every session, token and certificate of every
 * organization. The service does the same by itself if it finds that a failover of the database
 * lost commits. The operator must type {@link WORD} to confirm, unless `--yes` was given.
 *
 * @throws Refused if the operator does not confirm, or if the file of checkpoints cannot be read
 */
export async function reconcile(
  { json, yes, checkpoints }: Extract<GlassCommand, { readonly name: 'reconcile' }>,
  { database, terminal, operator, log }: ReconcileParts,
): Promise<void> {
  const { manager } = database.dataSource;
  const gaps = checkpoints === undefined ? [] : await sealGaps(manager, readText(checkpoints));
  for (const gap of gaps) terminal.say(gapText(gap));
  const ended = await countOnRecord(manager);
  terminal.say(
    'Ends all access on record of all organizations, as if the database had lost changes.',
  );
  terminal.say(`This ends: ${endedText(ended)}.`);
  terminal.say(
    'Keys and accounts stay. The next login of each person needs the provider and the key.',
  );
  if (!yes) await confirm(terminal);
  await reconcileNow(database.unchecked, operator);
  const about = { context: 'security', act: WORD, ...ended, ...operatorDetails(operator) };
  log.warn(about, 'break-glass: reconcile');
  if (json) {
    terminal.print(JSON.stringify({ command: WORD, changed: true, ended, gaps }, undefined, 2));
    return;
  }
  terminal.say('Start a full synchronization of each directory now.');
  terminal.print(`Ended: ${endedText(ended)}.`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new Refused(`Nothing was changed: ${path} cannot be read.`);
  }
}

function gapText({ tree, epoch, published, kept, isContradicted }: SealGap): string {
  const log = `The audit log of ${tree}, epoch ${epoch}`;
  return isContradicted
    ? `${log}: the published checkpoint of ${published} sealed events contradicts the database.`
    : `${log}: ${published - kept} sealed events are lost, from number ${kept} on. The published checkpoint has ${published}.`;
}

async function confirm(terminal: OperatorTerminal): Promise<void> {
  const typed = await terminal.ask(`Type ${WORD} to confirm: `);
  if (typed === undefined) {
    throw new Refused(
      'Nothing was changed: there is no terminal to confirm at. Scripts use --yes.',
    );
  }
  if (typed.trim() !== WORD) {
    throw new Refused(`Nothing was changed: this is not the word ${WORD}.`);
  }
}
