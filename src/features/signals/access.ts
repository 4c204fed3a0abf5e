import { MANAGE_SCOPE, READ_SCOPE } from '#domain/oauth/shared-signals/receivers.repository.js';

const OF_CLIENT = { session: 'client', origin: 'any', headerOnly: true } as const;

/**
 * The access rule of routes that read a stream of signals. The scope `ssf.manage` also gives the
 * right to read.
 */
export const READS = { ...OF_CLIENT, scope: READ_SCOPE } as const;

/** The access rule of routes that change a stream of signals, or take events from it. */
export const CHANGES = { ...OF_CLIENT, scope: MANAGE_SCOPE } as const;
