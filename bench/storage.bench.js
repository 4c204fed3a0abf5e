import { onDebianPostgres } from './debian-server.js';
import { load, table } from './measure.js';
import { clientCredentials, prepareOAuth } from './oauth.bench.js';
import { ScimClient } from './scim-client.js';
import { clientsOf } from './ssh.bench.js';

const ACTS = 2000;
const USERS = 500;
const PEOPLE = 16;

/**
 * Measures how many bytes a certificate, a token or a SCIM user adds to the write-ahead log (WAL),
 * and to tables with their indexes. It runs on Debian's PostgreSQL with its default settings. Each
 * measurement begins after a checkpoint of PostgreSQL. After a checkpoint, the first change of a
 * page writes the whole page to the WAL, so that these pages are measured, too.
 */
export async function run() {
  const rows = [];
  await onDebianPostgres(
    async ({ server, ask }) => {
      const state = async () => {
        const [row] = await ask('svc', 'CHECKPOINT', STATE);
        return { wal: Number(row.wal), size: Number(row.size) };
      };
      for (const [what, open] of Object.entries(WORKS)) {
        const { acts, clients, close } = await open(server);
        const before = await state();
        let left = acts;
        await load(clients.length, Number.MAX_SAFE_INTEGER, async (n) => {
          if ((left -= 1) < 0) throw new Done();
          await clients[n].act();
        }).catch((error) => {
          if (!(error instanceof Done)) throw error;
        });
        const after = await state();
        close();
        rows.push({
          what,
          'WAL bytes': ((after.wal - before.wal) / acts).toFixed(0),
          'table bytes': ((after.size - before.size) / acts).toFixed(0),
        });
      }
    },
    undefined,
    PEOPLE,
  );
  process.stdout.write(
    `${table(rows)}\n\n${ACTS} of each, and ${USERS} users; ${PEOPLE} clients\n`,
  );
}

/** The error by which a client ends a measurement after the last request was sent. */
class Done extends Error {}

const STATE = `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal,
  (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
   WHERE c.relkind IN ('r', 'm') AND c.relnamespace = 'public'::regnamespace) AS size`;

const WORKS = {
  'SSH certificate': (server) => worksOf(clientsOf(server), ACTS),
  'token by client_credentials': async (server) =>
    worksOf(clientCredentials(await prepareOAuth(server)), ACTS),
  'SCIM user': async ({ baseUrl, tokens: [admin] }) => {
    const made = await fetch(`${baseUrl}/api/v1/org/scim-tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({ description: 'bench' }),
    });
    const { token } = await made.json();
    const client = new ScimClient(`${baseUrl}/scim/v2`, token);
    let n = 0;
    const act = () => client.expect(201, 'POST', '/Users', userOf((n += 1)));
    return worksOf([{ act, close: () => client.close() }], USERS);
  },
};

function worksOf(clients, acts) {
  return { acts, clients, close: () => clients.forEach((client) => client.close()) };
}

function userOf(n) {
  const userName = `person-${n}@bench.example`;
  return JSON.stringify({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName,
    externalId: `external-${n}`,
    name: { givenName: 'Given', familyName: `Family ${n}` },
    emails: [{ type: 'work', value: userName, primary: true }],
  });
}
