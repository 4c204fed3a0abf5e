import { tmpdir } from 'node:os';
import { Readable, Writable } from 'node:stream';
import type { DataSource } from 'typeorm';
import { breakGlass } from '../../src/break-glass/break-glass.js';
import { terminalOf } from '../../src/break-glass/operator/terminal.js';
import { createLogger } from '../../src/platform/telemetry/pino-options.js';
import type { TestApp } from './app.js';
import { run, type Ended } from './entry-point.js';
import { rows } from './rows.js';

/**
 * The input of the operator's command (`node dist/admin.js`): the database, the standard input and
 * further environment variables.
 */
export interface BreakGlassOptions {
  readonly url: string;
  /** The standard input; by default it is closed. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Runs `node dist/admin.js` until it ends. Only the database and the log format are set, unless the
 * options have further variables.
 */
export function adminProcess(
  args: readonly string[],
  { input, ...options }: BreakGlassOptions,
): Promise<Ended> {
  return run('admin.js', args, {
    cwd: tmpdir(),
    environment: variablesOf(options),
    ...(input === undefined ? {} : { input }),
  });
}

/**
 * Runs the operator's command like {@link adminProcess}, but in this process, which saves half a
 * second. It has its own streams and variables, and log lines of the domain layer go to the log of
 * the test's application.
 */
export async function adminCommand(
  args: readonly string[],
  { input = '', ...options }: BreakGlassOptions,
): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  const into = (name: keyof typeof written) =>
    new Writable({
      write(chunk, _, done) {
        written[name] += String(chunk);
        done();
      },
    });
  const streams = { stdin: Readable.from([input]), stdout: into('stdout'), stderr: into('stderr') };
  const status = await breakGlass(args, {
    readEnvironment: () => variablesOf(options),
    terminal: terminalOf(streams),
    openLog: (settings) => createLogger(settings, streams.stderr),
  });
  return { status, ...written };
}

function variablesOf({ url, environment = {} }: BreakGlassOptions): Record<string, string> {
  return { SVC_DATABASE_URL: url, SVC_LOG_FORMAT: 'json', ...environment };
}

/**
 * Marks the database of a test application as one of production or of the tests. The operator's
 * command accepts only a database of production.
 */
export async function handTo(
  dataSource: DataSource,
  composition: 'production' | 'test',
): Promise<void> {
  await rows(dataSource, 'UPDATE deployment SET composition = $1', [composition]);
}

/** Returns the lines with the log target `security` that a command wrote. */
export function securityLines({ stderr }: Pick<Ended, 'stderr'>): Record<string, unknown>[] {
  return stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ context }) => context === 'security');
}

/**
 * Sets the issuer of all identities and providers to the URL of the running identity provider. A
 * test needs it after a restart of the application, because the provider then has another port.
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
