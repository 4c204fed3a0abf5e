import { createServer, type AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingLog } from '../support/recording-log.js';
import { makeTlsAuthority, type TlsAuthority } from '../support/tls-authority.js';
import { openDatabase } from '#platform/database/open-database.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';

/** The SSLRequest of the PostgreSQL protocol: its length (8), and the code 80877103. */
const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex');

/**
 * Refusals as PgBouncer 1.18 and PostgreSQL 15 word them, and the advice that the service prints at
 * its start.
 */
const REFUSALS: readonly [code: string, message: string, advice: RegExp][] = [
  ['08P01', 'unsupported startup parameter: statement_timeout', /ignore_startup_parameters = /],
  ['08P01', 'unsupported startup parameter: options', /ignore_startup_parameters = /],
  ['08P01', 'no such database: svc', /Create the database.*\[databases\]/],
  ['08P01', 'database "svc" does not exist', /Create the database/],
  ['3D000', 'database "svc" does not exist', /Create the database/],
  ['28P01', 'password authentication failed for user "svc"', /Correct the user and the password/],
  ['28000', 'role "svc" does not exist', /Correct the user and the password/],
  ['08P01', '"trust" authentication failed', /Correct the user and the password.*auth_file/],
  ['08P01', 'SSL required', /Add sslmode=verify-full/],
  [
    '28000',
    'no pg_hba.conf entry for host "192.0.2.1", user "svc", database "svc", no encryption',
    /Add sslmode=verify-full/,
  ],
];

let refusal: readonly [code: string, message: string] = ['', ''];
let port: number;
/** The certificate of the server, of an authority that no client trusts; undefined without TLS. */
let certificate: TlsAuthority | undefined;
const server = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    if (data.equals(SSL_REQUEST)) {
      if (certificate === undefined) return socket.end('N');
      socket.removeAllListeners('data').write('S');
      const secured = new TLSSocket(socket, { isServer: true, ...certificate });
      return secured.on('error', () => undefined);
    }
    const [code, message] = refusal;
    const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`);
    const head = Buffer.alloc(5);
    head.write('E');
    head.writeInt32BE(fields.length + 4, 1);
    return socket.end(Buffer.concat([head, fields]));
  });
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

async function startOn(query: string): Promise<string> {
  const url = `postgres://svc:planted-secret@127.0.0.1:${port}/svc${query}`;
  const config = {
    url,
    dataDir: '',
    maxConnections: 2,
    failover: undefined,
    pooler: undefined,
    directUrl: undefined,
  };
  const fault: unknown = await openDatabase(config, 'test', new RecordingLog()).catch(
    (error: unknown) => error,
  );
  return (fault as Error).message;
}

describe('a database that refuses the service', () => {
  it.each(REFUSALS)('%s %s: ends the start at once and says what to do', async (...refused) => {
    const [code, message, advice] = refused;
    refusal = [code, message];
    for (const query of ['', '?target_session_attrs=read-write']) {
      const text = await startOn(query);
      expect(text).toContain(`SVC_DATABASE_URL: the database cannot be reached: ${message}. `);
      expect(text).toMatch(advice);
      expect(text).toMatch(/\(docs\/operations\/databases\.md\)$/);
      expect(text).not.toContain('planted-secret');
    }
  });

  it('without TLS ends the start as well, if the URL wants it', async () => {
    expect(await startOn('?sslmode=verify-full')).toMatch(/offers no TLS.*databases\.md\)$/);
  });

  it.each([
    ['without TLS', undefined, /offers no TLS/],
    ['with a certificate that is not trusted', makeTlsAuthority(), /Name the file .* sslrootcert/],
  ])('%s is answered by 503 in a service that runs', async (_, shown, advice) => {
    certificate = shown;
    const url = `postgres://svc@127.0.0.1:${port}/svc?sslmode=verify-full`;
    const pool = new Pool({ connectionString: url });
    const fault: unknown = await pool.query('SELECT').catch((error: unknown) => error);
    await pool.end();
    expect(asDomainError(fault)).toMatchObject({ code: 'unavailable', retryAfter: 1 });
    expect(await startOn('?sslmode=verify-full')).toMatch(advice);
  });
});
