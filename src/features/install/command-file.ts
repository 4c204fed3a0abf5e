import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { encodedDocument, type EncodedDocument } from '#platform/http/request/encoded-document.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The file of the `svc` command, as clients download it, with its hash. */
export interface CommandFile extends EncodedDocument {
  /** The SHA-256 of the file, in hexadecimal. */
  readonly sha256: string;
}

/**
 * The file of the `svc` command, which is one bundle. The relative path is right in `src` and in
 * `dist`, because both folders are in the root of the project.
 */
const BUNDLE = new URL('../../../dist/svc.mjs', import.meta.url);

let known: CommandFile | undefined;

/**
 * Reads the file of the `svc` command at the first call, and keeps it in memory, because only a new
 * build changes it.
 *
 * @throws DomainError not_found in a build without the file
 */
export function commandFile(): CommandFile {
  known ??= read();
  if (!known) throw new DomainError('not_found', 'This build has no svc command: npm run build.');
  return known;
}

function read(): CommandFile | undefined {
  try {
    const content = readFileSync(BUNDLE);
    return {
      ...encodedDocument(content),
      sha256: createHash('sha256').update(content).digest('hex'),
    };
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  }
}
