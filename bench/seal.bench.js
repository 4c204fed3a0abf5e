import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { verifierOf } from '../dist/domain/audit/seal/checkpoint.js';
import { AuditSealer } from '../dist/domain/audit/seal/sealer.js';
import { systemClock } from '../dist/platform/clock/clock.js';
import { localSigner } from '../dist/platform/crypto/signer.js';
import { cpuSecondsOf } from './cpu-time.js';
import { measureTurn, table } from './measure.js';
import { fillPages } from './pages-data.js';
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
    const seal = await sealAll(server);
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
async function sealAll(server) {
  const dataSource = await new DataSource({
    type: 'postgres',
    ...poolOf(server.database),
  }).initialize();
  try {
    const signer = localSigner(generateKeyPairSync('ed25519').privateKey);
    const key = { name: 'bench.example/audit', signer };
    const sealer = new AuditSealer(dataSource, systemClock, key);
    const size = async () => {
      const [{ n }] = await dataSource.query('SELECT sum(size)::int AS n FROM audit_trees');
      return n ?? 0;
    };
    // Keeps the server from sealing at the same time. It begins a round only some time after the
    // last round, whose time is set to now.
    await dataSource.query('UPDATE audit_seal SET round_at = clock_timestamp()');
    const first = await size();
    const before = { own: process.cpuUsage(), postgres: cpuSecondsOf(server.pid).postgres };
    let rows = 0;
    for (let last = -1; rows !== last;) {
      last = rows;
      await sealer.seal();
      rows = (await size()) - first;
    }
    const { user, system } = process.cpuUsage(before.own);
    const postgres = (cpuSecondsOf(server.pid).postgres - before.postgres) * 1e6;
    const node = (user + system) / rows;
    return { rows, node, microseconds: node + postgres / rows, verifier: verifierOf(key) };
  } finally {
    await dataSource.destroy();
  }
}

function poolOf({ user: username, ...database }) {
  return { username, ...database };
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
