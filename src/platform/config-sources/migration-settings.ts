import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { problemsOf } from '#platform/config/setting-rules.js';
import { TABLE } from '#platform/config/table/settings.js';
import { readTable, rowsOf } from '#platform/config/table/variable.js';
import { unknownNames } from '#platform/config/unknown-variables.js';

const TABLES = { database: TABLE.database, log: TABLE.log };
const NAMES = new Set(rowsOf(TABLE.database).map(({ name }) => name));

/**
 * Reads the settings that a migration needs, which are those of the database and of the log. It
 * checks the names of all `SVC_` variables, because with a mistyped SVC_DATABASE_URL the embedded
 * database would be migrated. Of the rules between settings it applies only those about a setting
 * of the database, because the environment of a migration job has few other settings.
 *
 * @returns the settings, and `warnings`: a line for each `SVC_` variable that is no setting and
 *   probably not a mistyped one
 * @throws ConfigProblems with every problem at once
 */
export function migrationSettings(environment: Environment) {
  const { values, problems: ofTables } = readTable(TABLES, environment);
  const unknown = unknownNames(environment);
  const ofRules = problemsOf(environment).filter((line) => NAMES.has(line.split(':')[0] ?? ''));
  const problems = [...ofTables, ...ofRules, ...unknown.problems];
  if (!values || problems.length > 0) throw new ConfigProblems(problems);
  return { ...values, warnings: unknown.warnings };
}
