import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';

/**
 * The folder of the migration files. `src/` and `dist/` are equally deep below the package, so that
 * the path is right from both.
 */
export const MIGRATIONS = new URL('../../../../migrations/', import.meta.url);

/**
 * The rows that a migration in batches works on: the rows of one table in the order of one column.
 * Each transaction works on 250 of them.
 */
export interface Batches {
  readonly table: string;
  /** A column with an index, whose order the batches follow. */
  readonly key: string;
  /** An SQL condition that the rows of the batches meet; empty for all rows. */
  readonly where: string;
}

/**
 * The tables of a migration that gives a table another form. The rows are copied into a new table,
 * which gets the name of the former table at the end.
 */
export interface Move {
  readonly from: string;
  readonly into: string;
  /** The primary key of the former table, whose order the batches follow. */
  readonly key: string;
  /** A table of one row, whose column `key` has the last key that was copied. */
  readonly notes: string;
}

/** A file `*.sql` in the folder of migrations, with its text and the SHA-256 of the text. */
export interface Migration {
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
  /**
   * True for a background migration: a file that runs while the service already runs, and that no
   * start waits for. It builds indexes or moves rows.
   */
  readonly isBackground: boolean;
  /**
   * The rows on which the statements run in batches; undefined for a file whose statements run
   * once.
   */
  readonly batches: Batches | undefined;
  /** The tables of a file that runs in the background and moves rows; undefined for others. */
  readonly move: Move | undefined;
}

/**
 * The SHA-256 of earlier texts of a migration file that was changed after its release, by its name.
 * A database that ran such a text has recorded its SHA-256. The later migrations lead from each
 * text to the same schema, which a test compares.
 */
const EARLIER_TEXTS: Readonly<Record<string, readonly string[]>> = {
  // The earlier text locked the rows of all users in one transaction. With 100,000 users that took
  // 3.3 s, in which sign-ins and issuances waited and no user could be de-provisioned.
  '1763790010100-addresses-of-records.sql': [
    '67f41ec5ad665325ada189839b79cfe36dbd69aaa5a663e4746b28ef3b012f67',
  ],
  // Twins are members who signed in with an e-mail address of a SCIM user. The earlier text locked
  // the rows of all twins in one transaction. None of 20,000 twins got a credential for 2.6 s.
  '1763790010200-twins.sql': ['f4f50be0062cb430d93b9ff0415ed4e33bb9b5522bf9e8fec2c4d36433efdc38'],
  // While the earlier text ran, no statement could read `sessions`: for 3.5 s, with 100,000
  // sessions and 300,000 tokens.
  '1763790040000-device-sessions.sql': [
    'b5919454a92f495d97739ef9acc01eb2ff0cb827557082e9fb915736dc4099a1',
  ],
  // The earlier text also made what 1764000020000-reach-of-hosts.sql makes now.
  '1763900010000-access-targets.sql': [
    '83e3ee16d08719221b0b5f76af3b5012f6d334c646f8379045c6ddba7c7088af',
  ],
};

const BATCHES = /^-- batches of ([a-z_]+) by ([a-z_]+)(?: where (.+))?$/;

const MOVE = /^-- move of ([a-z_]+) into ([a-z_]+) by ([a-z_]+), noted in ([a-z_]+)$/;

/** Reads the migrations of a folder, in the order of their names. */
export async function readMigrations(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(
    names.map(async (name) => migrationOf(name, await readFile(new URL(name, directory), 'utf8'))),
  );
}

/**
 * Parses a migration file. Its first line says if it runs in batches or in the background. The
 * second line of a file in the background says if the file moves rows.
 */
export function migrationOf(name: string, text: string): Migration {
  const [first = '', second = ''] = text.split('\n', 2);
  const isBackground = first === '-- background';
  const [, table, key, where = ''] = BATCHES.exec(first) ?? [];
  return {
    name,
    text,
    sha256: createHash('sha256').update(text).digest('hex'),
    isBackground,
    batches: table === undefined || key === undefined ? undefined : { table, key, where },
    move: isBackground ? moveOf(second) : undefined,
  };
}

function moveOf(line: string): Move | undefined {
  const found = MOVE.exec(line);
  if (!found) return undefined;
  const [, from = '', into = '', key = '', notes = ''] = found;
  return { from, into, key, notes };
}

/**
 * Checks that the database has run this text of a migration file.
 *
 * @throws Error if the database ran a text that is neither that of the file nor listed in {@link
 *   EARLIER_TEXTS}
 */
export function assertUnchanged({ name, sha256 }: Migration, applied: string): void {
  if (applied === sha256 || EARLIER_TEXTS[name]?.includes(applied)) return;
  throw new Error(
    `Migration ${name} was changed after it was applied. Restore the file and write a new migration instead.`,
  );
}
