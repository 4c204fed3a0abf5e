import { spawn } from 'node:child_process';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { verifierOf } from '../dist/domain/audit/seal/checkpoint.js';
import { cpuSecondsOf } from './cpu-time.js';
import { measureTurn, table } from './measure.js';
import { fillPages } from './pages-data.js';
import { sealAll } from './sealing.js';
import { startBenchServer } from './server.js';
import { SSH_SCENARIOS } from './ssh.bench.js';

/**
 * The largest accepted CPU time for sealing an audit row, as a share of that of the request that
 * wrote the row.
 */
const MOST_SHARE = 0.05;

/** The most seconds for the verification of 1,000,000 rows. */
const MOST_SECONDS = 60;

/**
 * Seals 1,000,000 audit events (adds them to a signed Merkle tree), and verifies their export with
 * `svc audit verify`. The cost of sealing a row is compared with that of an SSH certificate, which
 * writes one row. The exit status is 1 if a bound is missed.
 */
export async function run() {
  Logger.overrideLogger(false);
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const server = await startBenchServer(folder);
  try {
    const [, scenario] = SSH_SCENARIOS;
    const turn = await measureTurn(
      server.pid,
      { open: () => scenario.open(server), sleeps: true },
      { seconds: 8, warmUpSeconds: 3 },
    );
    const certificate = ((turn.server + turn.postgres) * 1e6) / turn.latencies.length;
    const token = await fillPages(server.database);
    const seal = await measureSeal(server);
    const share = seal.microseconds / certificate;
    const sealed = {
      rows: seal.rows.toLocaleString('en-US'),
      'seal µs a row': seal.microseconds.toFixed(1),
      'of them Node': seal.node.toFixed(1),
      'certificate µs': certificate.toFixed(0),
      share: `${(share * 100).toFixed(2)} %`,
      bound: `${MOST_SHARE * 100} %`,
    };
    process.stdout.write(`${table([sealed])}\n\n`);
    const verified = await verify(server.baseUrl, token, folder, seal.verifier);
    const { seconds, mebibytes, status, output } = verified;
    const row = { 'verify s': seconds.toFixed(1), bound: MOST_SECONDS, MiB: mebibytes.toFixed(0) };
    process.stdout.write(`${table([row])}\n\n${output}\n`);
    if (share > MOST_SHARE || seconds > MOST_SECONDS || status !== 0) process.exitCode = 1;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Seals all audit rows that are not sealed yet. Returns the CPU microseconds for each row, in
 * Node.js alone and together with PostgreSQL.
 */
async function measureSeal(server) {
  const before = { own: process.cpuUsage(), postgres: cpuSecondsOf(server.pid).postgres };
  const { rows, key } = await sealAll(server.database);
  const { user, system } = process.cpuUsage(before.own);
  const postgres = (cpuSecondsOf(server.pid).postgres - before.postgres) * 1e6;
  const node = (user + system) / rows;
  return { rows, node, microseconds: node + postgres / rows, verifier: verifierOf(key) };
}

/** Exports the log of the organization, and verifies the export in a process of its own. */
async function verify(baseUrl, token, folder, verifier) {
  const headers = { cookie: `svc_session=${token}` };
  const api = `${baseUrl}/api/v1/org`;
  const file = join(folder, 'export.ndjson');
  await exportTo(file, `${api}/audit-events?order=asc&format=sealed`, headers);
  const checkpoints = join(folder, 'checkpoints.json');
  const answer = await fetch(`${api}/audit-checkpoints?limit=1000`, { headers });
  const text = await answer.text();
  await writeFile(checkpoints, text);
  const keys = join(folder, 'seal.key');
  // The server has sealed a part of the log with its own key, so that its public key is needed,
  // too.
  await writeFile(keys, [verifier, ...JSON.parse(text).keys].join('\n'));
  const start = performance.now();
  const child = spawn(
    process.execPath,
    ['dist/svc.mjs', 'audit', 'verify', file, '--checkpoint', checkpoints, '--key', keys],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  let mebibytes = 0;
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const watch = setInterval(() => (mebibytes = Math.max(mebibytes, memoryOf(child.pid))), 200);
  const status = await new Promise((done) => child.once('close', done));
  clearInterval(watch);
  return { status, output, mebibytes, seconds: (performance.now() - start) / 1000 };
}

/**
 * Stores an export. If a response is cut off, the next request continues after the last complete
 * line.
 */
async function exportTo(file, url, headers) {
  const stream = createWriteStream(file);
  let after = '';
  for (let lines = 1; lines > 0;) {
    lines = 0;
    const response = await fetch(`${url}${after}`, { headers });
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    let rest = '';
    let epoch;
    let isWhole = false;
    try {
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const parts = (rest + chunk).split('\n');
        rest = parts.pop() ?? '';
        for (const line of parts) {
          stream.write(`${line}\n`);
          lines += 1;
          epoch = /^\{"tree":"[^"]+","epoch":"(\d+)"/.exec(line)?.[1] ?? epoch;
          const index = /^\{"index":(\d+)/.exec(line)?.[1];
          if (index !== undefined) after = `&after=${epoch}.${index}`;
        }
      }
      isWhole = true;
    } catch {
      // the response was cut off
    }
    if (isWhole) break;
  }
  await new Promise((done) => stream.end(done));
}

function memoryOf(pid) {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return 0; // the process has just ended
  }
}
