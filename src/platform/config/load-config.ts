import { arrange, type ValidConfig } from './config.js';
import { withoutEmpty, type Environment } from './environment.js';
import { loadProviders } from './provider-settings.js';
import { kmsKeysOf, problemsOf, warningsOf, withTlsOrigin } from './setting-rules.js';
import { TABLE } from './table/settings.js';
import { readTable, type Table, type Values } from './table/variable.js';
import { unknownNames } from './unknown-variables.js';

/** The problems of a configuration. Each is a line with the variable's name, never its value. */
export class ConfigProblems extends Error {
  override readonly name = 'ConfigProblems';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** A valid configuration, and warnings about settings that are probably a mistake. */
export interface LoadedConfig {
  readonly config: ValidConfig;
  readonly warnings: readonly string[];
}

/**
 * Reads all variables, checks each variable and their combinations, and freezes the configuration.
 * @throws ConfigProblems with every problem at once
 */
export function loadConfig(raw: Environment): LoadedConfig {
  const environment = withTlsOrigin(withoutEmpty(raw));
  const { values, problems: ofTable } = readTable(TABLE, environment);
  const read = loadProviders(environment);
  const providers = read.flatMap(({ provider }) => provider ?? []);
  const ofProviders = read.flatMap((one) => one.problems);
  const unknown = unknownNames(environment);
  const problems = [...ofTable, ...ofProviders, ...problemsOf(environment), ...unknown.problems];
  if (!values || problems.length > 0) throw new ConfigProblems(problems);
  const config = deepFreeze(arrange(values, providers, kmsKeysOf(environment)));
  return { config, warnings: [...warningsOf(environment, config), ...unknown.warnings] };
}

/**
 * Reads the variables of one table. It ignores all other variables and checks no rule between two
 * variables. So a command of an operator works even if another variable is wrong or the object
 * store cannot be reached.
 * @throws ConfigProblems with every problem at once
 */
export function loadPart<T extends Table>(table: T, environment: Environment): Values<T> {
  const { values, problems } = readTable(table, withoutEmpty(environment));
  if (!values) throw new ConfigProblems(problems);
  return values;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
