import type { LiveSession } from '#domain/sessions/session.js';
import { moment, type Moment } from './moment.js';

/** The user of a page, for its template. */
export interface Person {
  readonly email: string;
  readonly name: string | null;
  /** True after a login with a security key; false after an upstream login only. */
  readonly verified: boolean;
  readonly enrolled: boolean;
  /** The end of the session. */
  readonly expires: Moment;
}

/** Returns the user of a session for a page; undefined without a session. */
export function person(session: LiveSession | undefined): Person | undefined {
  if (!session) return undefined;
  const { email, name } = session.user ?? session.pendingIdentity;
  return {
    email: email ?? '',
    name,
    verified: session.level === 'verified',
    enrolled: session.enrolled,
    expires: moment(session.expiresAt),
  };
}
