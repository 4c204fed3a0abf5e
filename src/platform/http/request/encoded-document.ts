import { gzipSync } from 'node:zlib';
import type { Request, Response } from 'express';
import { entityTag, namesTag } from './entity-tag.js';

/**
 * The bytes of a document in one coding, with their strong entity tag. RFC 9110 §8.8.3 demands a
 * tag of its own for each coding.
 */
interface Encoding {
  readonly content: Buffer;
  readonly etag: string;
}

/**
 * A public document in memory, and the same content in the coding gzip. It has no secret that the
 * compressed length could reveal.
 */
export interface EncodedDocument extends Encoding {
  readonly compressed: Encoding;
}

/**
 * Compresses a document, once for all its downloads.
 *
 * @param etag the entity tag of the content; by default the SHA-256 in hexadecimal
 */
export function encodedDocument(content: Buffer, etag = entityTag(content)): EncodedDocument {
  const compressed = { content: gzipSync(content), etag: etag.replace(/"$/, '-gzip"') };
  return { content, etag, compressed };
}

/**
 * Sends a document in the coding that the client prefers, or 304 if the client already has it in
 * either coding, because both codings change together.
 *
 * @param type the media type, or the extension of one
 */
export function sendEncoded(
  request: Request,
  response: Response,
  document: EncodedDocument,
  type: string,
): void {
  response.vary('Accept-Encoding');
  const isCompressed = request.acceptsEncodings(['gzip', 'identity']) === 'gzip';
  const { content, etag } = isCompressed ? document.compressed : document;
  const known = [etag, document.etag, document.compressed.etag].find((tag) =>
    namesTag(request.get('if-none-match'), tag),
  );
  response.setHeader('ETag', known ?? etag);
  if (known !== undefined) {
    response.status(304).end();
    return;
  }
  if (isCompressed) response.setHeader('Content-Encoding', 'gzip');
  response.type(type).send(content);
}
