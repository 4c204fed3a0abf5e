import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';

/** The name and the value of a header. */
export type HeaderLine = readonly [name: string, value: string];

const KEPT = Symbol('kept headers');
type KeepingResponse = ServerResponse & { [KEPT]?: HeaderLine[] };

/**
 * Keeps a header for a response until its head is written, so that no handler and no error path of
 * a library can remove it.
 */
export function keepHeader(response: KeepingResponse, name: string, value: string): void {
  (response[KEPT] ??= []).push([name, value]);
}

/** Returns the headers that were kept for a response. */
export function keptHeadersOf(response: KeepingResponse): readonly HeaderLine[] {
  return response[KEPT] ?? [];
}

/**
 * Returns true for a request that came over TLS to this process. Behind a proxy that ends TLS it is
 * false.
 */
export function isEncrypted({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
  return socket instanceof TLSSocket;
}
