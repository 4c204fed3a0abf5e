import type { IncomingMessage } from 'node:http';

/** The secret of an `Authorization: Bearer` header, whatever it looks like; undefined where there is none. */
export function bearerSecret({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
}
