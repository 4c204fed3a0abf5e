import { cpuSecondsOf } from './cpu-time.js';
import { onDebianPostgres } from './debian-server.js';
import { table } from './measure.js';

const REVOKED = 1000;
const DOWNLOADS = 50;
/**
 * The most CPU time of PostgreSQL for one download, in milliseconds. It is far below the 300 ms
 * that PostgreSQL needs to compile the statement (JIT), so that the benchmark notices a
 * compilation.
 */
const MOST = 20;

/**
 * Measures the download of the list of revoked certificates on a PostgreSQL that may compile
 * statements (JIT) and has never analyzed its tables.
 */
export async function run() {
  await onDebianPostgres(async ({ server, postgres, ask }) => {
    const [{ jit }] = await ask('svc', 'SHOW jit');
    await ask(
      'svc',
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                     valid_after, valid_before, revoked_at, revoke_reason, revoked_by)
       SELECT n, gen_random_uuid(), gen_random_uuid(), 'ada', '{ada}', 'ssh-ed25519 AAAA', a.fingerprint,
              now(), now() + interval '8 hours', now(), 'test', 'scim'
       FROM generate_series(1, ${REVOKED}) n, ssh_authorities a`,
    );
    const download = async (turn) => {
      const headers = { 'x-forwarded-for': `192.0.2.${turn}` };
      const response = await fetch(`${server.baseUrl}/v1/credentials/ssh/krl`, { headers });
      if (response.status !== 200) throw new Error(`the list has status ${response.status}`);
      return (await response.arrayBuffer()).byteLength;
    };
    const bytes = await download(201);
    const before = cpuSecondsOf(postgres.pid).postgres;
    for (let turn = 1; turn <= DOWNLOADS; turn += 1) await download(turn);
    const cpu = ((cpuSecondsOf(postgres.pid).postgres - before) * 1000) / DOWNLOADS;
    const row = { jit, revoked: REVOKED, bytes, 'PostgreSQL ms': cpu.toFixed(1), 'at most': MOST };
    process.stdout.write(
      `${table([row])}\n\nCPU time of all PostgreSQL processes for one download, of ${DOWNLOADS}\n`,
    );
    if (cpu > MOST) throw new Error(`a download costs more than ${MOST} ms of CPU`);
  });
}
