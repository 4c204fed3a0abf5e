import { tmpdir } from 'node:os';
import type { DataSource } from 'typeorm';
import type { TestApp } from './app.js';
import { run, type Ended } from './entry-point.js';
import { rows } from './rows.js';

/** The surroundings of a command of the operator. */
export interface BreakGlassOptions {
  readonly url: string;
  /** The standard input; by default it is closed. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Runs `node dist/admin.js` to its end, on a database alone: no other variable of the service is
 * set.
 */
export function breakGlass(
  args: readonly string[],
  { url, input, environment = {} }: BreakGlassOptions,
): Promise<Ended> {
  return run('admin.js', args, {
    cwd: tmpdir(),
    environment: { SVC_DATABASE_URL: url, SVC_LOG_FORMAT: 'json', ...environment },
    ...(input === undefined ? {} : { input }),
  });
}

/**
 * Hands the database of a test application to production, or back, so that the operator's command
 * takes it.
 */
export async function handTo(
  dataSource: DataSource,
  composition: 'production' | 'test',
): Promise<void> {
  await rows(dataSource, 'UPDATE deployment SET composition = $1', [composition]);
}

/** Returns the lines of the log target `security` that a command wrote. */
export function securityLines({ stderr }: Pick<Ended, 'stderr'>): Record<string, unknown>[] {
  return stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ context }) => context === 'security');
}

/**
 * Binds the people to the identity provider of an application that was started again: it has
 * another port.
 */
export async function renameProvider({
  config,
  dataSource,
}: Pick<TestApp, 'config' | 'dataSource'>): Promise<void> {
  const [provider] = config.upstream.providers;
  const issuer = provider?.type === 'oidc' ? provider.issuer : '';
  await rows(dataSource, 'UPDATE identities SET issuer = $1', [issuer]);
  await rows(dataSource, 'UPDATE organization_providers SET issuer = $1', [issuer]);
}
