import { generateKeyPairSync } from 'node:crypto';

/** Makes a new key and returns it as a line of a `.pub` file. */
export function newPublicKeyLine(type: 'ed25519' | 'rsa' = 'ed25519', bits = 3072): string {
  const jwk =
    type === 'ed25519'
      ? generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
      : generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' });
  const name = `ssh-${type}`;
  const parts =
    type === 'ed25519'
      ? [Buffer.from(jwk.x ?? '', 'base64url')]
      : [positive(jwk.e ?? ''), positive(jwk.n ?? '')];
  const blob = Buffer.concat([Buffer.from(name), ...parts].flatMap((part) => [length(part), part]));
  return `${name} ${blob.toString('base64')} test@example`;
}

function length(part: Buffer): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(part.length);
  return bytes;
}

/**
 * Encodes a positive integer as an SSH mpint (RFC 4251 §5). If the highest bit is set, it puts a
 * zero byte first, because the number would otherwise be negative.
 */
function positive(base64url: string): Buffer {
  const bytes = Buffer.from(base64url, 'base64url');
  return (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes;
}
