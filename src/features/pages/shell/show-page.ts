import type { Response } from 'express';
import { ENDED_WORDS } from '#domain/access-revocation/ended-words.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { LiveSession, VerifiedSession } from '#domain/sessions/session.js';
import type { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, admitUser } from './admission.js';
import { person } from './person.js';

/** The session of the visitor of a page, if there is one, and the response that shows the page. */
interface Visit {
  readonly caller: LiveSession | undefined;
  readonly response: Response;
}

/**
 * Shows a page to a user who logged in with a security key. Any other visitor is redirected to the
 * login.
 *
 * @param view the name of the template
 * @param load returns the data of the template; it runs only for an admitted user
 */
export async function showToUser(
  views: Views,
  { caller, response }: Visit,
  view: string,
  load: (session: VerifiedSession) => object | Promise<object>,
): Promise<void> {
  const session = admitUser(caller, response);
  if (session) send(views, response, view, session, await load(session));
}

/**
 * Shows a page to an admin of an organization who logged in with a security key.
 *
 * @param view the name of the template
 * @param load returns the data of the template; it runs only for an admitted admin
 * @throws DomainError admin_required for a user who is no admin
 */
export async function showToAdmin(
  views: Views,
  { caller, response }: Visit,
  view: string,
  load: (admin: Admin, session: VerifiedSession) => object | Promise<object>,
): Promise<void> {
  const admitted = admitAdmin(caller, response);
  if (!admitted) return;
  const { admin, session } = admitted;
  send(views, response, view, session, await load(admin, session));
}

function send(
  views: Views,
  response: Response,
  view: string,
  session: VerifiedSession,
  data: object,
): void {
  const page = { ...data, person: person(session), endedWords: ENDED_WORDS };
  response.type('html').send(views.render(view, page));
}
