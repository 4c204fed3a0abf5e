import { gzipSync } from 'node:zlib';
import type { Request, Response } from 'express';
import { entityTag, namesTag } from './entity-tag.js';

/**
 * The bytes of a document in one content coding, such as gzip, with their strong entity tag. RFC
 * 9110 §8.8.3 demands a different tag for each coding.
 */
interface Encoding {
  readonly content: Buffer;
  readonly etag: string;
}

/**
 * A public document in memory, plain and compressed with gzip. Compression is safe, because the
 * document has no secret that its compressed length could reveal.
 */
export interface EncodedDocument extends Encoding {
  readonly compressed: Encoding;
}

/**
 * Compresses a document once, for all its downloads.
 *
 * @param etag the entity tag of the content; by default the SHA-256 in hexadecimal
 */
export function encodedDocument(content: Buffer, etag = entityTag(content)): EncodedDocument {
  const compressed = { content: gzipSync(content), etag: etag.replace(/"$/, '-gzip"') };
  return { content, etag, compressed };
}

/**
 * Sends a document in the coding that the client prefers. Sends 304 if the client already has the
 * document in any coding, because all codings change together.
 *
 * @param type the media type, or a file extension that stands for it, such as `json`
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
