import { statementsOf } from '#platform/database/migration-steps/background.js';
import { migrationOf } from '#platform/database/migration-steps/migration-files.js';

/**
 * Tables with only a few rows. A migration may change them in one statement, because the lock is
 * short.
 */
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
 * A forbidden form of a statement, and the form to write `instead`. Such a statement makes readers
 * or writers of a table wait, or removes something that the running version still needs.
 */
interface Form {
  readonly form: RegExp;
  readonly instead: string;
}

/**
 * The forbidden forms of whole statements. If a form has a group `table`, it is allowed on a small
 * table and on a table that the same file creates. Any other form is refused on every table.
 */
const STATEMENTS: readonly Form[] = [
  {
    form: /^CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)(?:IF NOT EXISTS )?(?:\w+ )?ON (?:ONLY )?(?<table>\w+)/i,
    instead: 'CREATE INDEX CONCURRENTLY in a file that begins with "-- background"',
  },
  {
    form: /(?<!\bFOR (?:NO KEY )?)\b(?:UPDATE|DELETE FROM|MERGE INTO) (?:ONLY )?(?<table>\w+)\b/i,
    instead: 'a file that begins with "-- batches of TABLE by KEY"',
  },
  {
    form: /\bINSERT INTO (?<table>\w+)\b.*\bFROM\b/i,
    instead: 'a file that begins with "-- batches of TABLE by KEY", because foreign keys lock rows',
  },
  {
    form: /\bFROM (?:ONLY )?(?<table>\w+)\b.*\bFOR (?:(?:NO KEY )?UPDATE|(?:KEY )?SHARE)\b/i,
    instead: 'no lock of rows, which issuance waits for',
  },
  {
    form: /^(?:DROP TABLE|TRUNCATE)(?: TABLE)? (?:IF EXISTS )?(?:ONLY )?(?<table>\w+)/i,
    instead: 'a table that stays until no version before this one serves',
  },
  { form: /^(?:CLUSTER|REINDEX|VACUUM|LOCK|REFRESH)\b/i, instead: 'nothing of the kind' },
  { form: /\bCONCURRENTLY\b/i, instead: 'a file that begins with "-- background"' },
  { form: /^DROP INDEX\b/i, instead: 'DROP INDEX CONCURRENTLY IF EXISTS in the background' },
  { form: /^(?:DO ''|EXECUTE\b)/i, instead: 'statements that this test can read' },
];

/**
 * Matches a default of a new column that PostgreSQL computes once, so that it does not rewrite the
 * existing rows.
 */
const CONSTANT_DEFAULT =
  /\bDEFAULT \(?(?:(?:\w+ )?E?''|-?[\d.]+|true|false|null|now\(\)|current_\w+)(?:::[\w ]+?(?:\[\])?)?\)?(?=$| (?:NOT )?NULL\b)/i;

/** The forbidden forms of one action of an ALTER TABLE, which may have several actions. */
const ACTIONS: readonly Form[] = [
  {
    form: /^ADD (?:CONSTRAINT \w+ )?(?:PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY|EXCLUDE)\b(?!.*\b(?:NOT VALID|USING INDEX)\b)/i,
    instead:
      'ADD CONSTRAINT … NOT VALID, and VALIDATE CONSTRAINT in a later file of the background',
  },
  {
    form: /^ADD COLUMN\b.*\b(?:REFERENCES|UNIQUE|PRIMARY KEY|CHECK)\b/i,
    instead: 'ADD COLUMN alone, and the constraint NOT VALID',
  },
  {
    form: /^ADD COLUMN\b.*\b(?:DEFAULT|(?:small|big)?serial|GENERATED)\b/i,
    instead: 'a column without a default that is computed, which is filled in batches',
  },
  {
    form: /\bSET NOT NULL\b/i,
    instead: 'a CHECK (… IS NOT NULL) that is NOT VALID, and VALIDATE CONSTRAINT later',
  },
  {
    form: /^ALTER (?:COLUMN )?\w+ (?:(?:SET DATA )?TYPE|SET EXPRESSION)\b/i,
    instead: 'a new column that is filled in batches',
  },
  {
    form: /^VALIDATE CONSTRAINT\b/i,
    instead: 'VALIDATE CONSTRAINT in a file that begins with "-- background"',
  },
  {
    form: /^(?:DROP (?!CONSTRAINT\b)|RENAME\b)/i,
    instead: 'a name that stays until no version before this one serves',
  },
  {
    form: /^SET (?:LOGGED|UNLOGGED|TABLESPACE|ACCESS METHOD|SCHEMA)\b/i,
    instead: 'a new table that is filled in batches',
  },
];

const ATTACH: Form = {
  form: /^ATTACH PARTITION (?<table>\w+)/i,
  instead: 'a partition that the same file makes, because PostgreSQL reads every row of it',
};

const ALTER = /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?<table>\w+) (?<actions>.*)$/i;

/**
 * Lists the statements of a new migration that make other statements wait, each with the form to
 * write instead.
 */
export function lockingStatements(name: string, text: string): string[] {
  const { isBackground, batches } = migrationOf(name, text);
  if (isBackground) return [];
  const plain = plainText(text);
  const statements = statementsOf(plain).map((one) => one.replaceAll(/\s+/g, ' '));
  if (batches)
    return statementsOf(text)
      .filter((one) => !one.includes('migration.first'))
      .map((one) => `${one}: the bounds of the batch`);
  const made = namesMade(statements, /^CREATE (?:UNLOGGED )?TABLE (\w+)/i);
  const functions = namesMade(statements, /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)/i);
  const isSpared = (table: string | undefined) =>
    table !== undefined && (made.has(lower(table)) || SMALL_TABLES.has(lower(table)));
  const harm = (statement: string) => [
    ...matching(STATEMENTS, statement, isSpared),
    ...harmOfActions(statement, isSpared),
    ...(callsOneOf(functions, statement) ? ['no call of a function, whose body may lock'] : []),
  ];
  return statements.flatMap((statement) =>
    harm(statement).map((instead) => `${statement}: ${instead}`),
  );
}

/** Returns the advice for each forbidden form that a text matches, unless its table is spared. */
function matching(
  forms: readonly Form[],
  text: string,
  isSpared: (table: string | undefined) => boolean,
): string[] {
  return forms.flatMap(({ form, instead }) => {
    const match = form.exec(text);
    return match && !isSpared(match.groups?.['table']) ? [instead] : [];
  });
}

/** Returns the advice for each forbidden action of an ALTER TABLE. */
function harmOfActions(
  statement: string,
  isSpared: (table: string | undefined) => boolean,
): string[] {
  const { table, actions = '' } = ALTER.exec(statement)?.groups ?? {};
  if (table === undefined) return [];
  return actionsOf(actions).flatMap((action) => [
    ...matching([ATTACH], action, isSpared),
    ...(isSpared(table) ? [] : matching(ACTIONS, action, isSpared)),
  ]);
}

/**
 * Splits the actions of an ALTER TABLE statement at the commas outside of parentheses. To keep the
 * patterns simple, it adds the optional word COLUMN and removes a default that rewrites no rows.
 */
function actionsOf(text: string): string[] {
  const actions: string[] = [];
  let depth = 0;
  let action = '';
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ',' && depth === 0) {
      actions.push(action);
      action = '';
    } else action += character;
  }
  return [...actions, action].map((one) =>
    one
      .trim()
      .replace(
        /^ADD (?:COLUMN )?(?:IF NOT EXISTS )?(?!(?:CONSTRAINT|PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY|EXCLUDE)\b)/i,
        'ADD COLUMN ',
      )
      .replace(CONSTANT_DEFAULT, ''),
  );
}

function namesMade(statements: readonly string[], form: RegExp): ReadonlySet<string> {
  return new Set(statements.flatMap((one) => form.exec(one)?.[1] ?? []).map(lower));
}

function lower(name: string): string {
  return name.toLowerCase();
}

/**
 * Returns true if a statement calls a function that the same file creates. The rule must refuse the
 * call, because the body of the function may lock and is not checked.
 */
function callsOneOf(functions: ReadonlySet<string>, statement: string): boolean {
  if (!/^(?:SELECT|PERFORM|CALL|WITH|INSERT|VALUES)\b/i.test(statement)) return false;
  return [...statement.matchAll(/\b(\w+) ?\(/g)].some(([, name = '']) =>
    functions.has(lower(name)),
  );
}

/**
 * Simplifies the text of a migration for the patterns. It removes the content of strings, and the
 * bodies of functions, which the migration only stores. It unquotes names, and replaces a DO block
 * by its statements.
 */
function plainText(text: string): string {
  return text
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\bAS\s*(\$\w*\$)[^]*?\1/gi, "AS ''")
    .replaceAll(/\bDO\s+(?:LANGUAGE \w+\s+)?(\$\w*\$)([^]*?)\1/gi, (_, __, body: string) =>
      body.replaceAll(/\b(?:DECLARE|BEGIN|THEN|ELSE|LOOP)\b/gi, ';'),
    )
    .replaceAll(/(\$\w*\$)[^]*?\1/g, "''")
    .replaceAll(/'(?:[^']|'')*'/g, "''")
    .replaceAll(/"([^"]*)"/g, (_, name: string) => name.replaceAll(/\W/g, '_'))
    .replaceAll(/\b(?:public|pg_catalog)\./gi, '')
    .replaceAll(
      /^\s*(CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER\b[^;]*)/gim,
      (_, trigger: string) => trigger.replaceAll(/\bUPDATE\b/gi, 'CHANGE'),
    )
    .replaceAll(/\bON (?:UPDATE|DELETE) (?:CASCADE|SET NULL|RESTRICT|NO ACTION|SET DEFAULT)/gi, '')
    .replaceAll(/\bDO UPDATE SET\b/gi, 'DO CHANGE');
}
