/** The environment variables of the process. This file alone reads them in the command. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the environment variables of the process. */
export function variables(): Variables {
  return process.env;
}

/** Returns a variable; an empty one is unset. */
export function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** Returns the home folder of the user. */
export function homeFolder(): string | undefined {
  return variable('HOME') ?? variable('USERPROFILE');
}
