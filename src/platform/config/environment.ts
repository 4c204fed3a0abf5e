import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { Environment } from './table/variable.js';

export type { Environment };

/** The process's environment over that of `.env`, if there is one; empty strings count as unset. */
export function readEnvironment(): Environment {
  return withoutEmpty({ ...readDotEnv(), ...readProcessEnvironment() });
}

/** The process's environment alone; empty strings count as unset. */
export function readProcessEnvironment(): Environment {
  return withoutEmpty(process.env);
}

/** Decides for a library that listens only to a variable, which no operator is meant to set. */
export function setProcessVariable(name: string, value: string): void {
  process.env[name] = value;
}

/** Removes variables that are set to the empty string. */
export function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
}

function readDotEnv(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}
