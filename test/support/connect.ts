import { administer, type TestServer } from './test-server.js';

// A script for runScript: connects to a server of PostgreSQL, and prints the code of the error if
// one occurs.
const server: TestServer = JSON.parse(process.argv[2] ?? '');
const code = await administer(server, 'SELECT 1').then(
  () => '',
  (error: Error & { code?: string }) => error.code ?? error.message,
);
process.stdout.write(`${JSON.stringify({ code })}\n`);
process.stdin.resume();
