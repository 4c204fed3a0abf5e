import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { CHEAP_SETTINGS, copyCluster, TEMPLATE } from './cluster-template.js';
import { RecordingLog } from './recording-log.js';
import type { TestServer } from './test-server.js';

// A script for runScript: starts the PostgreSQL of a test run on a copy of the migrated data
// directory, and stops it when standard input ends.
const { dataDir }: { readonly dataDir: string } = JSON.parse(process.argv[2] ?? '');
await copyCluster(dataDir);
const settings = { ...CHEAP_SETTINGS, max_connections: '300' };
const server = await startEmbeddedPostgres({ dataDir, log: new RecordingLog(), settings });
const { socketDir, port, user, database } = server;
const answer: RunServerAnswer = { socketDir, port, user, database, template: TEMPLATE };
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.stdin.on('end', () => void server.stop()).resume();

/** The output of the script: the connection of the server. */
export interface RunServerAnswer extends TestServer {
  /** The name of the migrated database of which each test database is a copy. */
  readonly template: string;
}
