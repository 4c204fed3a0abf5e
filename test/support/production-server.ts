import { join } from 'node:path';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { Client } from './client.js';
import { createTestDatabase } from './database.js';
import { freePort } from './free-port.js';
import { startServerProcess, type ServerProcess } from './server-process.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import { providerEnvironment, TEST_CLIENT } from './provider-environment.js';

/** The built production server as a running process, with an identity provider of the tests. */
export interface ProductionServer {
  readonly baseUrl: string;
  readonly process: ServerProcess;
  /**
   * Creates an HTTP client with its own cookies and its own IP address. So no other client uses up
   * its rate limits.
   */
  client(): Client;
  /** Sends SIGTERM, waits for the end of the process, and returns the exit status. */
  stop(): Promise<number | null>;
}

/**
 * Starts `node dist/main.js`, which `npm test` has built. If the environment has no
 * SVC_DATABASE_URL, the server gets a new database.
 *
 * @param environment variables that replace those of every production server in the tests
 */
export async function startProductionServer(
  environment: Readonly<Record<string, string>>,
): Promise<ProductionServer> {
  const folder = await makeTemporaryDirectory();
  const own =
    environment['SVC_DATABASE_URL'] === undefined ? await createTestDatabase() : undefined;
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
  const server = startServerProcess(
    'main.js',
    {
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
      ...(own ? { SVC_DATABASE_URL: own.url } : {}),
      SVC_DATA_DIR: join(folder, 'data'),
      ...providerEnvironment(idp.issuer),
      SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
      SVC_LOG_FORMAT: 'json',
      RUST_LOG: 'trace',
      ...environment,
    },
    { cwd: folder },
  );
  await server.printed(/is served on port/);
  return {
    baseUrl,
    process: server,
    client: () => new Client(baseUrl),
    async stop() {
      server.signal('SIGTERM');
      const status = await server.ended;
      await idp.close();
      await own?.drop();
      await removeDirectory(folder);
      return status;
    },
  };
}
