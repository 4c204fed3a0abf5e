import { openMigrationConnection } from '#platform/database/connection.js';
import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { migrate } from '#platform/database/migrations.js';
import { RecordingLog } from './recording-log.js';
import { administer, urlOf, type TestServer } from './test-server.js';

// Run by runScript: starts an embedded server, prints its address, and stops it when standard input
// ends.
const argument: EmbeddedServerArgument = JSON.parse(process.argv[2] ?? '');
const { dataDir, settings = {}, template } = argument;
const log = new RecordingLog();
const server = await startEmbeddedPostgres({ dataDir, log, settings });
if (template !== undefined) await makeTemplate(server, template);
process.stdout.write(`${JSON.stringify({ ...server, log: log.lines })}\n`); // without `stop`, which is a function
process.stdin.on('end', () => void server.stop()).resume();

/** The argument of the script. */
export interface EmbeddedServerArgument {
  readonly dataDir: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** The name of a database to create and migrate. */
  readonly template?: string;
}

/** The output of the script. */
export interface EmbeddedServerAnswer extends TestServer {
  readonly log: readonly string[];
}

async function makeTemplate(on: TestServer, name: string): Promise<void> {
  await administer(on, `CREATE DATABASE ${name}`);
  const dataSource = await openMigrationConnection({ connectionString: urlOf(on, name) }, log);
  await migrate(dataSource, log);
  await dataSource.destroy();
}
