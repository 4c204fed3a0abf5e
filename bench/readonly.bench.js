import { setTimeout as delay } from 'node:timers/promises';
import { onDebianPostgres } from './debian-server.js';
import { table } from './measure.js';

const READ_ONLY_SECONDS = 20;
const MOST_SECONDS_BACK = 2;
const CLIENTS = 8;

/**
 * Makes the PostgreSQL read-only under a load of certificates, and watches the answers and the
 * readiness.
 */
export async function run(seconds = String(READ_ONLY_SECONDS)) {
  await onDebianPostgres(async ({ server, ask }) => {
    const answers = [];
    const load = { over: false };
    const issue = async (token) => {
      const began = performance.now();
      const response = await fetch(`${server.baseUrl}/v1/credentials/ssh`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-forwarded-for': `10.1.${(answers.length >> 8) & 255}.${answers.length & 255}`,
        },
        body: JSON.stringify({ public_key: server.publicKeyLine }),
      });
      await response.arrayBuffer();
      const retry = response.headers.get('retry-after') !== null;
      answers.push({ at: performance.now(), began, status: response.status, retry });
    };
    const clients = server.tokens.slice(0, CLIENTS).map(async (token) => {
      while (!load.over) {
        await issue(token);
        await delay(20);
      }
    });
    const isReady = async () => (await fetch(`${server.baseUrl}/health/ready`)).status === 200;
    await delay(2_000);
    const from = performance.now();
    await ask(
      'postgres',
      'ALTER SYSTEM SET default_transaction_read_only = on',
      'SELECT pg_reload_conf()',
    );
    await delay(1_000); // PostgreSQL's processes read the setting one after another
    let timesReady = 0;
    const settled = performance.now();
    while (performance.now() < settled + Number(seconds) * 1000) {
      if (await isReady()) timesReady += 1;
      await delay(500);
    }
    const until = performance.now();
    await ask(
      'postgres',
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    );
    const ended = performance.now();
    while (!(await isReady())) await delay(20);
    const ready = (performance.now() - ended) / 1000;
    await delay(3_000);
    load.over = true;
    await Promise.all(clients);
    const during = answers.filter(({ began, at }) => began > settled && at < until);
    const wrong = answers.filter(
      ({ status, retry }) => status !== 200 && !(status === 503 && retry),
    );
    const unserved = during.filter(({ status }) => status === 503);
    const failed = answers.filter(({ at, status }) => at > ended && status !== 200);
    const back = (Math.max(ended, ...failed.map(({ at }) => at)) - ended) / 1000;
    const row = {
      'read-only s': ((ended - from) / 1000).toFixed(1),
      answers: during.length,
      '503 with retry-after': unserved.length,
      'other faults': wrong.length,
      'times ready': timesReady,
      'ready again s': ready.toFixed(2),
      'last fault s': back.toFixed(2),
    };
    const statuses = Object.groupBy(wrong, ({ status }) => status);
    for (const [status, { length }] of Object.entries(statuses))
      process.stdout.write(`${length} answers with status ${status}\n`);
    process.stdout.write(`${table([row])}\n`);
    const isRight = wrong.length === 0 && during.length > 0 && unserved.length === during.length;
    if (!isRight || timesReady > 0 || Math.max(ready, back) > MOST_SECONDS_BACK)
      throw new Error(
        'the read-only PostgreSQL was not met with 503 alone, or not left within 2 s',
      );
  });
}
