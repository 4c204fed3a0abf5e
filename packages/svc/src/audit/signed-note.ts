import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { CliFailure } from '../program/failure.js';
import { fileReason } from '../program/system-errors.js';
import type { SizedRoot } from './tree-hash.js';

/**
 * A checkpoint of a Merkle tree: the signed text (`note`), and the size and root that it states.
 */
export interface SignedCheckpoint extends SizedRoot {
  readonly tree: string;
  readonly epoch: string;
  /** The time that the checkpoint states, which is only for information. */
  readonly time: string;
  readonly note: string;
}

/**
 * A public key that verifies checkpoints, with its name and its id of 4 bytes
 * (c2sp.org/signed-note).
 */
export interface VerifierKey {
  readonly name: string;
  readonly id: Buffer;
  readonly key: KeyObject;
}

const ED25519 = 1;
/** The beginning of an Ed25519 public key in DER (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Reads the public keys of a file, one on each line.
 *
 * @throws CliFailure also for a file without a key, because nothing could be checked with it
 */
export function readVerifiers(path: string): VerifierKey[] {
  const lines = readText(path)
    .split('\n')
    .filter((line) => line.trim() !== '');
  if (lines.length === 0) throw noKey(`${path} has no public key of a seal.`);
  return lines.map((line) => {
    const key = parseVerifier(line.trim());
    if (key) return key;
    throw noKey(`${path} has a line that is no public key of a seal.`);
  });
}

function noKey(message: string): CliFailure {
  return new CliFailure(message, 'Copy a line of `keys` in GET /api/v1/org/audit-checkpoints.');
}

/** Reads a public key as c2sp.org/signed-note writes it; undefined for another text. */
export function parseVerifier(text: string): VerifierKey | undefined {
  const [, name = '', hex = '', base64 = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length !== 33 || bytes[0] !== ED25519) return undefined;
  const digest = createHash('sha256').update(`${name}\n`).update(bytes).digest();
  const id = digest.subarray(0, 4);
  if (id.toString('hex') !== hex) return undefined;
  const der = Buffer.concat([SPKI, bytes.subarray(1)]);
  return { name, id, key: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}

/** Returns true if one of the keys has signed a checkpoint. */
export function isSigned({ note }: SignedCheckpoint, keys: readonly VerifierKey[]): boolean {
  const [text = '', signatures = ''] = note.split('\n\n');
  return signatures.split('\n').some((line) => {
    const [, name, base64 = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    const key = keys.find((one) => one.name === name && one.id.equals(bytes.subarray(0, 4)));
    return key !== undefined && verify(null, Buffer.from(`${text}\n`), key.key, bytes.subarray(4));
  });
}

/**
 * Reads a checkpoint; undefined for another text. Nothing may follow the lines of the signatures: a
 * file to which `svc audit watch` added it would have a second, unproven checkpoint.
 */
export function parseCheckpoint(note: string): SignedCheckpoint | undefined {
  const [, tree = '', epoch = '', size = '', root = '', time = ''] =
    /^\S+\/([0-9a-f-]{36})\/(\d{1,18})\n(\d{1,15})\n([A-Za-z0-9+/]{43}=)\n(?:time (\S+)\n)?\n(?:— \S+ \S+\n)+$/.exec(
      note,
    ) ?? [];
  if (tree === '') return undefined;
  return { tree, epoch, size: Number(size), root: Buffer.from(root, 'base64'), time, note };
}

/**
 * Reads the checkpoints of a file: signed texts with an empty line between them, an answer of the
 * API, or log lines of the service.
 * @throws CliFailure for a file with another text
 */
export function readCheckpoints(path: string): SignedCheckpoint[] {
  const text = readText(path);
  const notes = text.trimStart().startsWith('{') ? notesOfJson(text) : notesOfText(text);
  return notes.map((note) => {
    const checkpoint = parseCheckpoint(note);
    if (checkpoint) return checkpoint;
    throw new CliFailure(
      `${path} has a text that is no checkpoint: ${JSON.stringify(note.slice(0, 60))}`,
      'Give a file of svc audit watch, an answer of the API, or lines of the log.',
    );
  });
}

/**
 * Splits a text into checkpoints. Each one has an empty line before its signature, and another
 * after it.
 */
function notesOfText(text: string): string[] {
  const parts = text.split(/\n\n+/).filter((part) => part.trim() !== '');
  const pairs = Array.from({ length: Math.ceil(parts.length / 2) }, (_, n) => [
    parts[2 * n] ?? '',
    parts[2 * n + 1] ?? '',
  ]);
  return pairs.map(
    ([body = '', signature = '']) => `${body.trimStart()}\n\n${signature.trimEnd()}\n`,
  );
}

function notesOfJson(text: string): string[] {
  const whole = asJson(text);
  const documents = whole === undefined ? text.split('\n').map(asJson) : [whole];
  return documents.flatMap((document) => {
    const { checkpoints, note } = (document ?? {}) as { checkpoints?: unknown; note?: unknown };
    if (Array.isArray(checkpoints)) {
      return checkpoints.map((one: { note?: unknown }) => String(one.note));
    }
    if (Array.isArray(note)) return [note.join('\n')];
    return typeof note === 'string' ? [note] : [];
  });
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CliFailure(`${path} cannot be read: ${fileReason(error)}.`, 'Name a file.');
  }
}
