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
 * checks the names of all `SVC_` variables. With a mistyped SVC_DATABASE_URL, it would otherwise
 * migrate the embedded database. It ignores problems between settings that are not about the
 * database, because a migration job lacks most other settings.
 *
 * @returns the settings, and `warnings`: a line for each `SVC_` variable that is neither a setting
 *   nor probably a mistyped setting
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
