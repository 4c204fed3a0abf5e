import { ACCESS } from './access.js';
import { KEYS } from './keys.js';
import { OPERATION } from './operation.js';
import { SERVICE } from './service.js';
import { rowsOf, type Variable } from './variable.js';

/**
 * Every variable of the service at its place in the configuration, apart from those of providers.
 */
export const TABLE = { ...SERVICE, ...KEYS, ...ACCESS, ...OPERATION };

/** The same by name. */
export const VARIABLES: ReadonlyMap<string, Variable> = new Map(
  rowsOf(TABLE).map((row) => [row.name, row]),
);
