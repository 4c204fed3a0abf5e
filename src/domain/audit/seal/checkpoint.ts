import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';
import type { Signer } from '#platform/crypto/signer.js';

/**
 * The id of the Merkle tree of the deployment, which has the events without an organization. Every
 * other tree has the id of its organization.
 */
export const DEPLOYMENT = '00000000-0000-0000-0000-000000000000';

/** The type of an Ed25519 signature in a signed note (c2sp.org/signed-note). */
const ED25519 = Buffer.of(1);

/**
 * The facts that a checkpoint states about a Merkle tree: its id, the epoch of the feed, the number
 * of leaves, the root hash, and the time.
 */
export interface TreeHead {
  readonly tree: string;
  readonly epoch: string;
  readonly size: number;
  readonly root: Buffer;
  readonly at: Date;
}

/** The key that signs checkpoints, and the name under which it signs. */
export interface SealKey {
  readonly signer: Signer;
  /** The name of the key, such as `login.example.com/audit`. */
  readonly name: string;
}

/**
 * Returns a signed checkpoint (c2sp.org/tlog-checkpoint). Its lines are the origin, which names the
 * tree and the epoch, the size, the root, and the time, which is only for information.
 */
export async function signCheckpoint(
  { signer, name }: SealKey,
  { tree, epoch, size, root, at }: TreeHead,
): Promise<string> {
  const origin = `${name}/${tree}/${epoch}`;
  const text = `${origin}\n${size}\n${root.toString('base64')}\ntime ${at.toISOString()}\n`;
  const signature = await signer.sign(Buffer.from(text));
  const id = keyId(name, signer.publicKey);
  return `${text}\n— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/**
 * Returns the public key in the text format by which verifiers read it: name, key id and key
 * (c2sp.org/signed-note).
 */
export function verifierOf({ signer, name }: SealKey): string {
  const key = Buffer.concat([ED25519, rawKey(signer.publicKey)]).toString('base64');
  return `${name}+${keyId(name, signer.publicKey).toString('hex')}+${key}`;
}

/**
 * Reads the tree, the epoch, the size and the root (base64) that a checkpoint states; undefined for
 * any other text. The signature is not verified.
 */
export function headOf(
  note: string,
): (Pick<TreeHead, 'tree' | 'epoch' | 'size'> & { readonly root: string }) | undefined {
  const [, tree, epoch, size, root] =
    /^\S+\/([0-9a-f-]{36})\/(\d{1,18})\n(\d{1,15})\n([A-Za-z0-9+/]{43}=)\n/.exec(note) ?? [];
  if (tree === undefined || epoch === undefined || root === undefined) return undefined;
  return { tree, epoch, size: Number(size), root };
}

/**
 * Returns true if a text is the checkpoint of a tree, an epoch and a size, and one of the keys has
 * signed it. Nothing may follow the lines of the signatures, because `svc audit` reads no such
 * text, and would call a tree damaged whose first leaf names it.
 *
 * @param verifiers the public keys, as {@link verifierOf} writes them
 */
export function isCheckpointOf(
  note: string,
  { tree, epoch, size }: Pick<TreeHead, 'tree' | 'epoch' | 'size'>,
  verifiers: readonly string[],
): boolean {
  const head = headOf(note);
  if (head?.tree !== tree || head.epoch !== epoch || head.size !== size) return false;
  const [text = '', signatures = ''] = note.split('\n\n');
  if (!/^(?:— \S+ \S+\n)+$/.test(note.slice(text.length + 2))) return false;
  return signatures.split('\n').some((line) => {
    const [, name = '', base64 = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    const begin = `${name}+${bytes.toString('hex', 0, 4)}+`;
    const verifier = verifiers.find((one) => one.startsWith(begin));
    if (verifier === undefined) return false;
    const key = Buffer.from(verifier.slice(begin.length), 'base64').subarray(ED25519.length);
    return verify(null, Buffer.from(`${text}\n`), publicKeyOf(key), bytes.subarray(4));
  });
}

/** Returns the public key that has 32 raw bytes. */
function publicKeyOf(raw: Buffer): KeyObject {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

function keyId(name: string, publicKey: KeyObject): Buffer {
  const digest = createHash('sha256').update(`${name}\n`).update(ED25519).update(rawKey(publicKey));
  return digest.digest().subarray(0, 4);
}

/** Returns the 32 bytes of an Ed25519 public key. */
function rawKey(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
}
