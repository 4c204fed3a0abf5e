import { statementsOf } from '#platform/database/migration-steps/background.js';
import { migrationOf } from '#platform/database/migration-steps/migration-files.js';

/** Tables of a few rows, which a migration may change at once. */
const SMALL_TABLES: ReadonlySet<string> = new Set([
  'deployment',
  'database_identity',
  'replicas',
  'replica_reports',
  'ssh_authority',
  'ssh_authorities',
  'ssh_revocation_list',
  'token_signing_keys',
  'saml_sp_keys',
]);

/**
 * A form of a statement that keeps the readers or writers of a table waiting, and what to write
 * instead.
 */
interface Form {
  readonly form: RegExp;
  readonly instead: string;
  /** True if the form does no harm to a table of a few rows. */
  readonly sparesSmall?: boolean;
}

/** Forms on a table that existed before the file. The group `table` is its name. */
const FORMS: readonly Form[] = [
  {
    form: /^CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)(?:IF NOT EXISTS )?(?:\w+ )?ON (?:ONLY )?(?<table>\w+)/i,
    instead: 'CREATE INDEX CONCURRENTLY in a file that begins with "-- background"',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bADD CONSTRAINT \w+ (?!.*\b(?:NOT VALID|USING INDEX)\b)/i,
    instead:
      'ADD CONSTRAINT … NOT VALID, and VALIDATE CONSTRAINT in a later file of the background',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bADD (?:PRIMARY|UNIQUE|CHECK|FOREIGN|EXCLUDE)\b(?!.*\b(?:NOT VALID|USING INDEX)\b)/i,
    instead: 'a named constraint that is NOT VALID',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bADD COLUMN\b[^,]*\b(?:REFERENCES|UNIQUE|PRIMARY KEY|CHECK)\b/i,
    instead: 'ADD COLUMN alone, and the constraint NOT VALID',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bSET NOT NULL\b/i,
    instead: 'a CHECK (… IS NOT NULL) that is NOT VALID, and VALIDATE CONSTRAINT later',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE\b/i,
    instead: 'a new column that is filled in batches',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bADD COLUMN\b[^,]*(?:\bDEFAULT (?!now\(\))\w+\s*\(|\b(?:small|big)?serial\b|\bGENERATED\b)/i,
    instead: 'a column without a default, which is filled in batches',
    sparesSmall: true,
  },
  {
    form: /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)\b.*\bVALIDATE CONSTRAINT\b/i,
    instead: 'VALIDATE CONSTRAINT in a file that begins with "-- background"',
    sparesSmall: true,
  },
  {
    form: /\b(?:UPDATE|DELETE FROM) (?:ONLY )?(?<table>\w+)\b(?! (?:SKIP|NOWAIT|OF)\b)/i,
    instead: 'a file that begins with "-- batches of TABLE by KEY"',
    sparesSmall: true,
  },
  { form: /^(?:CLUSTER|REINDEX|VACUUM|LOCK)\b/i, instead: 'nothing of the kind' },
  { form: /\bCONCURRENTLY\b/i, instead: 'a file that begins with "-- background"' },
  { form: /^DROP INDEX\b/i, instead: 'DROP INDEX CONCURRENTLY IF EXISTS in the background' },
];

/**
 * Lists the statements of a new migration that keep others waiting, each with what to write
 * instead.
 */
export function lockingStatements(name: string, text: string): string[] {
  const { isBackground, batches } = migrationOf(name, text);
  if (isBackground) return [];
  const statements = statementsOf(withoutBodies(text)).map((one) => one.replaceAll(/\s+/g, ' '));
  if (batches)
    return statements
      .filter((one) => !one.includes('migration.first'))
      .map((one) => `${one}: the bounds of the batch`);
  const made = new Set(
    statements.map((one) => /^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/i.exec(one)?.[1]),
  );
  return statements.flatMap((statement) =>
    FORMS.filter(({ form, sparesSmall }) => {
      const match = form.exec(statement);
      const table = match?.groups?.['table'];
      if (!match || (table !== undefined && made.has(table))) return false;
      return !(sparesSmall && SMALL_TABLES.has(table ?? ''));
    }).map(({ instead }) => `${statement}: ${instead}`),
  );
}

/**
 * Removes the bodies of functions, which a migration does not run, and texts. The body of DO is
 * kept.
 */
function withoutBodies(text: string): string {
  return text
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\bAS (\$\w*\$)[^]*?\1/gi, "AS ''")
    .replaceAll(
      /^\s*(CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER\b[^;]*)/gim,
      (_, trigger: string) => trigger.replaceAll(/\bUPDATE\b/gi, 'CHANGE'),
    )
    .replaceAll(/\bON (?:UPDATE|DELETE) (?:CASCADE|SET NULL|RESTRICT|NO ACTION|SET DEFAULT)/gi, '')
    .replaceAll(/\bFOR (?:NO KEY )?UPDATE\b/gi, '');
}
