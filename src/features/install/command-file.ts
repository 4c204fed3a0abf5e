import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { encodedDocument, type EncodedDocument } from '#platform/http/request/encoded-document.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The bundle of the `svc` command, as clients download it, with its hash. */
export interface CommandFile extends EncodedDocument {
  /** The SHA-256 of the bundle, in hexadecimal. */
  readonly sha256: string;
}

/** The address of the bundle. The same relative path is right in the sources and in the build. */
const BUNDLE = new URL('../../../dist/svc.mjs', import.meta.url);

let known: CommandFile | undefined;

/**
 * Reads the bundle at its first use, and keeps it: it changes only with a new build.
 *
 * @throws DomainError not_found in a build without the bundle
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
