import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';

/** The name and the value of a header. */
export type HeaderLine = readonly [name: string, value: string];

const KEPT = Symbol('kept headers');
type KeepingResponse = ServerResponse & { [KEPT]?: HeaderLine[] };

/**
 * Sets a header of a response that no handler and no library can remove. It is stored apart from
 * the other headers, and written at the last moment, together with the head of the response.
 */
export function keepHeader(response: KeepingResponse, name: string, value: string): void {
  (response[KEPT] ??= []).push([name, value]);
}

/** Returns the headers that {@link keepHeader} set for a response. */
export function keptHeadersOf(response: KeepingResponse): readonly HeaderLine[] {
  return response[KEPT] ?? [];
}

/**
 * Returns true for a request that came to this process over TLS. Behind a proxy that terminates TLS
 * it is false.
 */
export function isEncrypted({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
  return socket instanceof TLSSocket;
}
