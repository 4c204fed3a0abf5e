import type { LiveSession } from '#domain/sessions/session.js';
import { moment, type Moment } from './moment.js';

/** Who is looking at a page, as the templates know them. */
export interface Person {
  readonly email: string;
  readonly name: string | null;
  /** Logged in with a security key, and not only signed in upstream. */
  readonly verified: boolean;
  readonly enrolled: boolean;
  /** When the session ends. */
  readonly expires: Moment;
}

/** The person of a session; undefined when nobody is signed in. */
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
