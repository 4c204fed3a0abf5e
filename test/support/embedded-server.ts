import { openMigrationConnection } from '#platform/database/connection.js';
import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { migrate } from '#platform/database/migrations.js';
import { RecordingLog } from './recording-log.js';
import { administer, urlOf, type TestServer } from './test-server.js';

// Run by runScript: starts an embedded server, prints where it is, and stops it when standard input ends.
const argument: EmbeddedServerArgument = JSON.parse(process.argv[2] ?? '');
const { dataDir, settings = {}, template } = argument;
const log = new RecordingLog();
const server = await startEmbeddedPostgres({ dataDir, log, settings });
if (template !== undefined) await makeTemplate(server, template);
process.stdout.write(`${JSON.stringify({ ...server, log: log.lines })}\n`); // `stop`, a function, is left out
process.stdin.on('end', () => void server.stop()).resume();

/** What the script is told. */
export interface EmbeddedServerArgument {
  readonly dataDir: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** The name of a database to make and migrate. */
  readonly template?: string;
}

/** What the script answers. */
export interface EmbeddedServerAnswer extends TestServer {
  readonly log: readonly string[];
}

async function makeTemplate(on: TestServer, name: string): Promise<void> {
  await administer(on, `CREATE DATABASE ${name}`);
  const dataSource = await openMigrationConnection({ connectionString: urlOf(on, name) }, log);
  await migrate(dataSource, log);
  await dataSource.destroy();
}
