import { administer, type TestServer } from './test-server.js';

// A script for runScript. It connects to a PostgreSQL server, and prints the error code, or an
// empty text if the connection succeeds.
const server: TestServer = JSON.parse(process.argv[2] ?? '');
const code = await administer(server, 'SELECT 1').then(
  () => '',
  (error: Error & { code?: string }) => error.code ?? error.message,
);
process.stdout.write(`${JSON.stringify({ code })}\n`);
process.stdin.resume();
