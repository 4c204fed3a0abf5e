import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { Environment } from './table/variable.js';

export type { Environment };

/** Returns the variables of the process and those that only `.env` sets, without empty strings. */
export function readEnvironment(): Environment {
  return withoutEmpty({ ...readDotEnv(), ...readProcessEnvironment() });
}

/** Returns the variables of the process without those of `.env`. Empty strings count as unset. */
export function readProcessEnvironment(): Environment {
  return withoutEmpty(process.env);
}

/** Sets a variable of the process for a library that reads its settings only from variables. */
export function setProcessVariable(name: string, value: string): void {
  process.env[name] = value;
}

/** Returns a copy without the empty variables, because an empty string counts as unset. */
export function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
}

function readDotEnv(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return {};
    throw new Error(`.env: must be a readable file (${code})`, { cause: error });
  }
}
