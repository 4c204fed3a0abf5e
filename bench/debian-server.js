import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import '../test/support/typescript-hooks.js';
import { makeCaKey } from './ssh.bench.js';
import { startBenchServer } from './server.js';

const { startDebianPostgres } = await import('../test/support/debian-postgres.ts');

/**
 * Creates the role and the database of a server in a new PostgreSQL, and returns the URL of the
 * database.
 */
export async function createServiceDatabase(postgres) {
  const client = new Client({ connectionString: postgres.url('postgres', 'postgres') });
  await client.connect();
  try {
    await client.query('CREATE ROLE svc LOGIN');
    await client.query('CREATE DATABASE svc OWNER svc');
  } finally {
    await client.end();
  }
  return postgres.url('svc', 'svc');
}

/**
 * Starts the measured server on Debian's PostgreSQL with its default settings, calls a function,
 * and stops both afterwards.
 *
 * @param settingsOf returns variables of the server for the PostgreSQL that was started
 * @param people the number of people who have enrolled a key
 */
export async function onDebianPostgres(act, settingsOf = async () => ({}), people = 32) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const postgres = await startDebianPostgres();
  const ask = async (database, ...texts) => {
    const client = new Client({ connectionString: postgres.url('postgres', database) });
    await client.connect();
    try {
      let rows = [];
      for (const text of texts) ({ rows } = await client.query(text));
      return rows;
    } finally {
      await client.end();
    }
  };
  try {
    const settings = {
      SVC_DATABASE_URL: await createServiceDatabase(postgres),
      SVC_SSH_CA_KEY_PATH: await makeCaKey(folder),
      ...(await settingsOf(postgres)),
    };
    const server = await startBenchServer(folder, settings, undefined, people);
    try {
      await act({ server, postgres, ask });
    } finally {
      await server.stop();
    }
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
