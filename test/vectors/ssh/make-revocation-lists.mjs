// Makes revocation-lists.json: the lists that OpenSSH's own `ssh-keygen -k` writes. Given the same number, date and
// serials, our encoder has to make the very same bytes.
//
//   node test/vectors/ssh/make-revocation-lists.mjs
//
// The authority is made for this file alone and signs nothing.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'krl-vectors-'));
const path = (name) => join(folder, name);
const keygen = (...args) => execFileSync('ssh-keygen', ['-q', ...args]);

const START = 1_763_683_200_000;
const near = (...offsets) => offsets.map((offset) => START + offset);
const cases = {
  nothing: [],
  'one serial': near(0),
  'two in a row': near(0, 1),
  'scattered serials': near(0, 1_000_003, 2_500_000, 31_536_000_000),
  'a hundred in a row': near(...Array.from({ length: 100 }, (_, index) => index)),
  'serials that lie close': near(0, 2, 3, 7, 8, 13, 14, 15, 21, 22, 30, 31),
  'a bitmap whose highest bit is set': near(...Array.from({ length: 20 }, (_, index) => 2 * index), 39),
  'the largest serial': [Number.MAX_SAFE_INTEGER],
};

keygen('-t', 'ed25519', '-N', '', '-C', '', '-f', path('ca'));
const lists = Object.entries(cases).map(([name, serials], index) => {
  writeFileSync(path('spec'), serials.map((serial) => `serial: ${serial}\n`).join(''));
  const number = String(START + index);
  keygen('-k', '-f', path('krl'), '-s', path('ca.pub'), '-z', number, path('spec'));
  const krl = readFileSync(path('krl'));
  const generatedAt = new Date(Number(krl.readBigUInt64BE(20)) * 1000).toISOString();
  return { name, number, generatedAt, serials, krl: krl.toString('hex') };
});

const authority = readFileSync(path('ca.pub'), 'utf8').split(' ')[1].trim();
writeFileSync(
  new URL('revocation-lists.json', import.meta.url),
  `${JSON.stringify({ authority, lists }, null, 2)}\n`,
);
rmSync(folder, { recursive: true });
