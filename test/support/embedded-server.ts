import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { RecordingLog } from './recording-log.js';
import type { TestServer } from './test-server.js';

// A script for runScript. It starts an embedded PostgreSQL server, prints how to connect to it, and
// stops it when standard input ends.
const argument: EmbeddedServerArgument = JSON.parse(process.argv[2] ?? '');
const { dataDir, settings = {} } = argument;
const log = new RecordingLog();
const server = await startEmbeddedPostgres({ dataDir, log, settings });
// JSON leaves out the member `stop`, because it is a function.
process.stdout.write(`${JSON.stringify({ ...server, log: log.lines })}\n`);
process.stdin.on('end', () => void server.stop()).resume();

/** The argument of the script. */
export interface EmbeddedServerArgument {
  readonly dataDir: string;
  readonly settings?: Readonly<Record<string, string>>;
}

/** The output of the script: the connection of the server, and its log lines so far. */
export interface EmbeddedServerAnswer extends TestServer {
  readonly log: readonly string[];
}
