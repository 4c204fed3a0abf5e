import 'reflect-metadata';
import { WrongArguments } from '@svc/arguments';
import { waitForWitness } from '#domain/admin/database-failover/by-operator/witness.js';
import { operatorAccess, operatorDomains } from '#domain/admin/operator-access/compose-access.js';
import { systemClock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { loadPart } from '#platform/config/load-config.js';
import { TABLE } from '#platform/config/table/settings.js';
import { DirectoryInUse } from '#platform/database/embedded-postgres/reclaim.js';
import {
  openInstalledDatabase,
  type InstalledDatabase,
} from '#platform/database/installed-database.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { serverOf } from '#domain/audit/seal/checkpoint-store.js';
import { onRecorded } from '#platform/database/statements/recorded-ids.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { act } from './act.js';
import { archive, type ArchiveCommand } from './archive/archive.js';
import { sealedExport, type SealedExportCommand } from './archive/sealed-export.js';
import { readCommand, USAGE, type GlassCommand } from './arguments.js';
import { check, inUse } from './check.js';
import { actOnDomain, listDomains } from './domains.js';
import { operatorOf, surroundingsOfProcess, type Surroundings } from './ground.js';
import { init } from './init/init.js';
import { listAdmins } from './list-admins.js';
import { reconcile } from './reconcile.js';
import type { OperatorTerminal } from './operator/terminal.js';

/**
 * Runs a command of the operator on the machine of the service. Returns the exit status: 0 for done
 * or healthy, 1 for failed, refused or unhealthy, 2 for wrong usage.
 */
export async function breakGlass(
  args: readonly string[],
  surroundings = surroundingsOfProcess,
): Promise<0 | 1 | 2> {
  const { terminal } = surroundings;
  try {
    const command = readCommand(args);
    if (command.name === 'help') {
      terminal.print(USAGE.trimEnd());
      return 0;
    }
    if (command.name === 'init') {
      surroundings.openLog({ format: 'text', filter: 'error' });
      return await init(command, terminal);
    }
    return await run(command, surroundings);
  } catch (error) {
    if (error instanceof WrongArguments) {
      terminal.say(`${error.message}\nnode dist/admin.js --help lists the commands.`);
      return 2;
    }
    terminal.say(explain(error));
    return 1;
  }
}

/** Returns the text that the operator sees for an error. */
function explain(error: unknown): string {
  if (error instanceof DomainError) return error.detail;
  return error instanceof DirectoryInUse ? inUse(error) : reasonOf(error);
}

/**
 * The milliseconds for which the command `archive` waits for an answer of PostgreSQL, which sorts
 * the events of a whole month first. No setting of PostgreSQL limits the time of that sort. The
 * wait is so long that only a database server that has vanished exceeds it.
 */
const ANSWER_OF_ARCHIVE = 6 * 3_600_000;

/** The parts of the configuration that the commands use. */
const PARTS = {
  database: TABLE.database,
  log: TABLE.log,
  objectStore: TABLE.objectStore,
  upstream: { extraCaCerts: TABLE.upstream.extraCaCerts },
  cleanUp: TABLE.cleanUp,
};

async function run(
  command: Exclude<GlassCommand, { readonly name: 'help' | 'init' }>,
  { readEnvironment, terminal, openLog }: Surroundings,
): Promise<0 | 1> {
  const environment = readEnvironment();
  if (command.name === 'check') {
    openLog({ format: 'text', filter: 'error' });
    return check(command, environment, terminal);
  }
  const { database, log: logging, ...others } = loadPart(PARTS, environment);
  const log = openLog(logging);
  const opened = await openInstalledDatabase(database, 'production', {
    isGated: command.name !== 'reconcile',
    answerWithin: command.name === 'archive' ? ANSWER_OF_ARCHIVE : undefined,
  });
  const recorded: string[] = [];
  onRecorded(opened.dataSource, (ids) => recorded.push(...ids));
  try {
    const access = operatorAccess(opened.dataSource);
    if (command.name === 'reconcile') {
      const operator = operatorOf(environment);
      await reconcile(command, { database: opened, terminal, operator, log });
      return 0;
    }
    if (command.name === 'archive' || command.name === 'sealed-export') {
      await copyEvents(command, opened.dataSource, others, terminal);
      return 0;
    }
    if (command.name === 'domains') {
      const domains = operatorDomains(opened.dataSource);
      if (command.act === 'list') await listDomains(command, domains, terminal);
      else
        await actOnDomain(command, { domains, terminal, operator: operatorOf(environment), log });
    } else if (command.name === 'list-admins') await listAdmins(command, access, terminal);
    else await act(command, { access, terminal, operator: operatorOf(environment), log });
    // If the database fails over to a standby server now, the change could be lost, and the
    // operator is warned of that. An embedded database has no standby server.
    if (!opened.unchecked.isEmbedded) await tellIfUnseen(opened, recorded, terminal);
    return 0;
  } finally {
    await opened.close();
  }
}

/** Runs a command that copies events of the audit log into a file or an object store. */
async function copyEvents(
  command: ArchiveCommand | SealedExportCommand,
  dataSource: DataSource,
  {
    objectStore,
    upstream,
    cleanUp,
  }: Pick<Config, 'objectStore' | 'cleanUp'> & {
    readonly upstream: Pick<Config['upstream'], 'extraCaCerts'>;
  },
  terminal: OperatorTerminal,
): Promise<void> {
  if (command.name === 'sealed-export') {
    return sealedExport(command, dataSource, cleanUp.retentionDays, terminal);
  }
  const server = serverOf(objectStore, upstream.extraCaCerts);
  return archive(command, dataSource, { terminal, server });
}

/**
 * Warns the operator if no running process of the service has read the change. A process that has
 * read it would notice if a failover of the database loses the change, and would repeat the change.
 *
 * @param recorded the ids of the audit rows of the change
 */
async function tellIfUnseen(
  { dataSource }: InstalledDatabase,
  recorded: readonly string[],
  terminal: OperatorTerminal,
): Promise<void> {
  if (recorded.length === 0) return;
  // The change is already committed, so that a fault of the database during the wait must not make
  // the command fail.
  if (await waitForWitness(dataSource.manager, recorded, systemClock).catch(() => false)) return;
  terminal.say(
    'No running process of the service has seen this change. If the database fails over soon and loses it, repeat the command.',
  );
}
