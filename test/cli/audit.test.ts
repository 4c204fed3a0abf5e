import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { organizationOf, writeEvent } from '../support/feed-reader.js';
import { endEpoch, sealKey, TestSeal } from '../support/seal.js';
import { SvcHome } from '../support/svc-command.js';

let app: TestApp;
let ada: EnrolledUser;
let org: string;
let home: SvcHome;
let seal: TestSeal;

beforeAll(async () => {
  // The service signs checkpoints with the same key as the test.
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  app = await startTestApp({ environment: { SVC_AUDIT_SEAL_KEY: pem } });
  ada = await app.enrolled('ada@svc-audit.example');
  org = await organizationOf(app.dataSource, 'ada@svc-audit.example');
  seal = new TestSeal(
    app.dataSource,
    privateKey,
    sealKey(privateKey, `${new URL(app.baseUrl).host}/audit`),
  );
  home = await SvcHome.create();
  await home.logIn(app, ada, 'openid email svc:admin');
  writeFileSync(file('seal.key'), `${seal.verifier}\n`);
});
afterAll(async () => {
  await home.remove();
  await app.close();
});

const file = (name: string) => join(home.path, name);
const svc = (...args: string[]) => home.run(args);
const watch = () => svc('audit', 'watch', file('checkpoints'), '--key', file('seal.key'));
const verify = (...more: string[]) =>
  svc('audit', 'verify', file('export'), '--checkpoint', file('checkpoints'), ...more);

/** Writes events, and seals them. Returns their ids. */
async function addEvents(events: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < events; n += 1) ids.push(await writeEvent(app.dataSource, org));
  await seal.seal();
  return ids;
}

async function storeExport(): Promise<void> {
  const { status, text } = await ada.client.get(
    '/api/v1/org/audit-events?order=asc&format=sealed',
    { address: newAddress() },
  );
  expect(status).toBe(200);
  writeFileSync(file('export'), text);
}

describe('svc audit', () => {
  it('watches checkpoints, and verifies an export with them', async () => {
    await addEvents(3);
    expect(await watch()).toMatchObject({ status: 0, stderr: '' });
    await addEvents(2);
    await addEvents(300);
    await endEpoch(app.dataSource);
    await addEvents(2);
    const end = await watch();
    expect(end).toMatchObject({ status: 0, stdout: expect.stringMatching(/^[3-9] checkpoints/m) });
    expect((await watch()).stdout).toContain('0 checkpoints');
    await storeExport();
    const whole = await verify('--key', file('seal.key'), '--json');
    expect(whole.stderr).toBe('');
    expect(JSON.parse(whole.stdout)).toMatchObject({
      whole: true,
      faults: 0,
      not_proven: 0,
      signatures_checked: true,
    });
    expect(whole.status).toBe(0);
  });

  it('leaves the file of checkpoints as it was if the disk is full in the middle of one', async () => {
    const kept = readFileSync(file('checkpoints'), 'utf8');
    await addEvents(1);
    const lines = [
      "const fs = require('node:fs');",
      'const { appendFileSync } = fs;',
      'fs.appendFileSync = (path, text, options) => {',
      '  appendFileSync(path, text.slice(0, 50), options);',
      "  throw Object.assign(new Error('no space left'), { code: 'ENOSPC', path });",
      '};',
    ];
    writeFileSync(file('full.cjs'), lines.join('\n'));
    const env = { NODE_OPTIONS: `${home.env['NODE_OPTIONS']} --require=${file('full.cjs')}` };
    for (const [name, text] of [
      ['checkpoints', kept],
      ['others', undefined],
    ] as const) {
      const end = await home.run(['audit', 'watch', file(name)], { env });
      expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('the disk is full') });
      expect(existsSync(file(name)) ? readFileSync(file(name), 'utf8') : undefined).toBe(text);
    }
    expect(await watch()).toMatchObject({ status: 0, stderr: '' });
  });

  it('goes on with an export after the last line of a part of it', async () => {
    await storeExport();
    const all = readFileSync(file('export'), 'utf8');
    const lines = all.split('\n');
    const at = lines.findIndex((line) => line.startsWith('{"index":100,'));
    const { epoch } = JSON.parse(lines[0] ?? '') as { epoch: string };
    const { text } = await ada.client.get(
      `/api/v1/org/audit-events?order=asc&format=sealed&after=${epoch}.100`,
      { address: newAddress() },
    );
    writeFileSync(file('export'), `${lines.slice(0, at + 1).join('\n')}\n${text}`);
    expect(await verify('--key', file('seal.key'))).toMatchObject({ status: 0 });
    writeFileSync(file('export'), text);
    expect(await verify('--key', file('seal.key'))).toMatchObject({ status: 0 });
  });

  it('names a row that was changed, and exits with status 1', async () => {
    const [id = ''] = await addEvents(1);
    expect((await watch()).status).toBe(0);
    await app.dataSource.query("UPDATE audit_events SET user_agent = 'x' WHERE id = $1", [id]);
    await storeExport();
    const end = await verify('--key', file('seal.key'));
    expect(end.status).toBe(1);
    expect(end.stdout).toContain(`changed: ${id}`);
    await app.dataSource.query('UPDATE audit_events SET user_agent = NULL WHERE id = $1', [id]);
  });

  it('names lines that were cut from the export, or that changed places', async () => {
    await storeExport();
    const lines = readFileSync(file('export'), 'utf8').split('\n');
    const at = lines.findIndex((line) => line.startsWith('{"index":50,'));
    writeFileSync(file('export'), lines.toSpliced(at, 1).join('\n'));
    const cut = await verify();
    expect(cut).toMatchObject({ status: 1, stdout: expect.stringContaining('leaf 50 of epoch') });
    const swapped = lines.with(at, lines[at + 1] ?? '').with(at + 1, lines[at] ?? '');
    writeFileSync(file('export'), swapped.join('\n'));
    expect(await verify()).toMatchObject({ status: 1, stdout: expect.stringContaining('moved: ') });
    writeFileSync(file('export'), lines.slice(0, 20).join('\n'));
    expect(await verify()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('ends before'),
    });
    const [first = '', ...rest] = lines;
    const { epoch, ...tree } = JSON.parse(first) as { epoch: string };
    for (const line of [tree, { ...tree, epoch: 'x' }, { ...tree, epoch, from: null }]) {
      writeFileSync(file('export'), [JSON.stringify(line), ...rest].join('\n'));
      expect(await verify()).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('Line 1 of'),
      });
    }
    writeFileSync(file('export'), `${lines[0]}\n${'0'.repeat(20 * 2 ** 20)}`);
    expect(await verify()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/Line 2 of .* is longer than 16 MiB/),
    });
    writeFileSync(file('export'), 'no export\n');
    expect(await verify()).toMatchObject({ status: 1, stderr: expect.stringContaining('Line 1') });
  });

  it('refuses checkpoints of another key, and wrong arguments', async () => {
    await storeExport();
    writeFileSync(file('other.key'), `${new TestSeal(app.dataSource).verifier}\n`);
    const end = await verify('--key', file('other.key'));
    expect(end).toMatchObject({ status: 1, stdout: expect.stringContaining('no signature') });
    writeFileSync(file('no.key'), '\n');
    expect(await verify('--key', file('no.key'))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('has no public key of a seal'),
    });
    expect((await svc('audit', 'verify', file('export'))).status).toBe(2);
    expect((await svc('audit')).status).toBe(2);
    expect((await svc('audit', 'mend')).status).toBe(2);
    expect(await svc('audit', '--help')).toMatchObject({ status: 0 });
  });

  it('adds nothing to the file beside the signed text of a checkpoint', async () => {
    await addEvents(1);
    const kept = readFileSync(file('checkpoints'), 'utf8');
    const [oldest] = kept.split('\n\n— ');
    const change = (note: string) =>
      app.dataSource.query(
        `UPDATE audit_checkpoints SET note = ${note} WHERE tree = $1 AND (epoch, size) = (
           SELECT epoch, size FROM audit_checkpoints WHERE tree = $1 ORDER BY epoch DESC, size DESC LIMIT 1)`,
        [org, `\n${oldest}\n\n— forged AAAA\n`],
      );
    await change('note || $2');
    const end = await watch();
    await change("replace(note, $2, '')");
    expect(end).toMatchObject({ status: 1, stdout: expect.stringContaining('another text') });
    expect(readFileSync(file('checkpoints'), 'utf8')).toBe(kept);
    expect(await watch()).toMatchObject({ status: 0, stderr: '' });
  });

  it('says that a server which was set back does not extend the checkpoints', async () => {
    expect((await watch()).status).toBe(0);
    const kept = readFileSync(file('checkpoints'), 'utf8');
    await app.dataSource.query(
      `DELETE FROM audit_checkpoints c WHERE tree = $1 AND (epoch, size) = (
         SELECT epoch, size FROM audit_checkpoints WHERE tree = $1 ORDER BY epoch DESC, size DESC LIMIT 1)`,
      [org],
    );
    const end = await watch();
    expect(end).toMatchObject({ status: 1, stdout: expect.stringContaining('does not extend') });
    expect(readFileSync(file('checkpoints'), 'utf8')).toBe(kept);
  });
});
