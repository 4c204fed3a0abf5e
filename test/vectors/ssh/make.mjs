// Makes certificates.json and certificates-p256.json: what OpenSSH's own `ssh-keygen -s` signs for each accepted key type, by an
// authority of either type. Our encoder has to make the very same bytes once it is given the nonce that ssh-keygen drew, and the
// numbers of its ECDSA signature; Ed25519 signatures are deterministic. An argument names the one file to make.
//
//   node test/vectors/ssh/make.mjs [certificates.json|certificates-p256.json]
//
// The authorities are made for these files alone and sign nothing else.
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'ssh-vectors-'));
const path = (name) => join(folder, name);
const keygen = (...args) =>
  execFileSync('ssh-keygen', ['-q', ...args], { env: { ...process.env, TZ: 'UTC' } });
const read = (name) => readFileSync(path(name), 'utf8').trim();
const withoutComment = (line) => line.split(' ', 2).join(' ');

const string = (value) => {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
const coordinate = (key, part) =>
  Buffer.from(key.export({ format: 'jwk' })[part], 'base64url');

/** Security keys cannot be made without hardware, but their public halves are only bytes. */
function securityKey(type) {
  const fields = [string(type)];
  if (type.startsWith('sk-ssh-ed25519')) {
    fields.push(string(coordinate(generateKeyPairSync('ed25519').publicKey, 'x')));
  } else {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const point = [Buffer.of(4), coordinate(publicKey, 'x'), coordinate(publicKey, 'y')];
    fields.push(string('nistp256'), string(Buffer.concat(point)));
  }
  fields.push(string('ssh:'));
  return `${type} ${Buffer.concat(fields).toString('base64')}`;
}

keygen('-t', 'ed25519', '-N', '', '-C', '', '-f', path('ca'));
const authority = withoutComment(read('ca.pub'));
const point = Buffer.from(authority.split(' ')[1], 'base64').subarray(-32);
const file = Buffer.from(read('ca').replace(/-----.*-----/g, ''), 'base64');
const end = file.lastIndexOf(point);
const seed = file.subarray(end - 32, end).toString('hex');

const made = [
  ['ed25519', '256'],
  ['ecdsa', '256'],
  ['ecdsa', '384'],
  ['ecdsa', '521'],
  ['rsa', '3072'],
].map(([type, bits], index) => {
  keygen('-t', type, '-b', bits, '-N', '', '-C', '', '-f', path(`key${index}`));
  return withoutComment(read(`key${index}.pub`));
});
const lines = [
  ...made,
  securityKey('sk-ssh-ed25519@openssh.com'),
  securityKey('sk-ecdsa-sha2-nistp256@openssh.com'),
];

const certificatesOf = (ca) => lines.map((line, index) => {
  const principals = index % 2 === 0 ? ['alice@example.com'] : ['alice@example.com', 'alice'];
  const serial = String(1_763_683_200_000 + index);
  writeFileSync(path('subject.pub'), `${line}\n`);
  keygen('-s', path(ca), '-I', 'alice@example.com@svc.example.com', '-n', principals.join(','),
    '-z', serial, '-V', '20251121000000:20251121080000', path('subject.pub'));
  return { publicKey: line, principals, serial, certificate: withoutComment(read('subject-cert.pub')) };
});

const settings = {
  keyId: 'alice@example.com@svc.example.com',
  validAfter: '2025-11-21T00:00:00Z',
  validBefore: '2025-11-21T08:00:00Z',
};
const write = (name, vectors) => {
  if ((process.argv[2] ?? name) !== name) return;
  writeFileSync(new URL(name, import.meta.url), `${JSON.stringify(vectors, null, 2)}\n`);
};
write('certificates.json', {
  authority: { seed, publicKey: authority },
  ...settings,
  certificates: certificatesOf('ca'),
});
keygen('-t', 'ecdsa', '-b', '256', '-N', '', '-C', '', '-f', path('ca256'));
write('certificates-p256.json', {
  authority: { privateKey: read('ca256'), publicKey: withoutComment(read('ca256.pub')) },
  ...settings,
  certificates: certificatesOf('ca256'),
});
rmSync(folder, { recursive: true });
