import { cp, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const LAST_OF_0_9 = '1763788060000-issuances-of-subject.sql';
const LAST_OF_0_12 = '1763800030000-reconciliation.sql';
const LAST_OF_0_13 = '1764000010100-sids-of-before.sql';
const BEFORE_PARTITIONS = '1764300040000-due-signals.sql';
const LAST_OF_0_10 = '1763790070000-github-repositories.sql';

/**
 * The folder with the original texts of some migrations of version 0.10.0. Their texts in
 * `migrations` were changed later, because the original ones stopped the issuing of credentials for
 * seconds.
 */
const EARLIER_TEXTS = 'test/vectors/migrations-0.10.0';
/**
 * The folder with the text that a migration had in a build after 0.13.0. That text included
 * statements that are in a later file today.
 */
const TEXTS_AFTER_0_13 = 'test/vectors/migrations-0.13.0';
const SPLIT_OFF: ReadonlySet<string> = new Set([
  '1763790010110-names-of-removals.sql',
  '1763790040100-device-sessions-of-before.sql',
  '1763790040200-device-tokens-of-before.sql',
  '1763790040300-index-of-device-sessions.sql',
]);

/** The versions in which some migrations were already split into several files. */
const AFTER_SPLIT: ReadonlySet<string> = new Set(['0.12', 'after 0.13', 'before partitions']);

/** The last migration before the first one that runs in batches, in an upgrade from 0.9.0. */
const BEFORE_BATCHES = '1763790010000-people-of-records.sql';

/**
 * Makes a folder inside `below` with the migrations that an earlier version had. Returns its URL.
 */
export async function earlierMigrations(
  version: '0.9' | 'before batches' | '0.10' | '0.12' | 'after 0.13' | 'before partitions',
  below: string,
): Promise<URL> {
  const folder = join(below, version.replaceAll(' ', '-'));
  await mkdir(folder);
  const last = {
    '0.9': LAST_OF_0_9,
    'before batches': BEFORE_BATCHES,
    '0.10': LAST_OF_0_10,
    '0.12': LAST_OF_0_12,
    'after 0.13': LAST_OF_0_13,
    'before partitions': BEFORE_PARTITIONS,
  }[version];
  for (const name of await readdir('migrations')) {
    if (name <= last && (AFTER_SPLIT.has(version) || !SPLIT_OFF.has(name)))
      await cp(join('migrations', name), join(folder, name));
  }
  if (version === '0.10') await cp(EARLIER_TEXTS, folder, { recursive: true });
  if (version === 'after 0.13') await cp(TEXTS_AFTER_0_13, folder, { recursive: true });
  return new URL(`${pathToFileURL(folder).href}/`);
}
