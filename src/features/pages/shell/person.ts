import type { LiveSession } from '#domain/sessions/session.js';
import { moment, type Moment } from './moment.js';

/** The user of a page, for its template. */
export interface Person {
  readonly email: string;
  readonly name: string | null;
  /** True after a login with a security key; false after an upstream login only. */
  readonly verified: boolean;
  readonly enrolled: boolean;
  /** True for an admin of an organization in a verified session. */
  readonly isAdmin: boolean;
  /** The id of the session: the scripts of the page state it with every write. */
  readonly sessionId: string;
  /** The end of the session. */
  readonly expires: Moment;
}

/** Returns the user of a session for a page; undefined without a session. */
export function person(session: LiveSession | undefined): Person | undefined {
  if (!session) return undefined;
  const { email, name } = session.user ?? session.pendingIdentity;
  const verified = session.level === 'verified';
  return {
    email: email ?? '',
    name,
    verified,
    enrolled: session.enrolled,
    isAdmin: verified && session.user.isOrgAdmin && session.user.orgId !== null,
    sessionId: session.id,
    expires: moment(session.expiresAt),
  };
}
