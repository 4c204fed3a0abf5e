import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';

/** The request that whatever runs is run for; nothing between requests. */
export const servedRequest = new AsyncLocalStorage<IncomingMessage>();
