import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';

/** A header as it is written. */
export type HeaderLine = readonly [name: string, value: string];

const KEPT = Symbol('kept headers');
type KeepingResponse = ServerResponse & { [KEPT]?: HeaderLine[] };

/**
 * Keeps a header for a response, and sets it when the head is written. No handler and no error path
 * of a library can remove it.
 */
export function keepHeader(response: KeepingResponse, name: string, value: string): void {
  (response[KEPT] ??= []).push([name, value]);
}

/** The headers that were kept for a response. */
export function keptHeadersOf(response: KeepingResponse): readonly HeaderLine[] {
  return response[KEPT] ?? [];
}

/** Returns true for a request over TLS that this process ends. */
export function isEncrypted({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
  return socket instanceof TLSSocket;
}
