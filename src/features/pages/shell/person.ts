import type { LiveSession } from '#domain/sessions/session.js';
import { moment, type Moment } from './moment.js';

/** The user of a session, for the template of a page. */
export interface Person {
  readonly email: string;
  readonly name: string | null;
  /**
   * True after a login with a security key; false if the user has only signed in at the identity
   * provider.
   */
  readonly verified: boolean;
  readonly enrolled: boolean;
  /** True if the user is an admin of an organization and has logged in with a security key. */
  readonly isAdmin: boolean;
  /**
   * The id of the session. The scripts of the page send it with every write, so that a page of an
   * earlier session changes nothing.
   */
  readonly sessionId: string;
  /** The time at which the session ends. */
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
