import { markup } from '@svc/markup';
import type { PlainPage } from '@svc/stand-ins/plain-page';

const TITLE = 'Demo application';

/**
 * The state of a user's access at the demo's application. `ended`: a logout token of the service
 * ended the session. `signed-out`: the browser has no session.
 */
export type AccessState = 'signed-out' | 'signed-in' | 'ended';

const SIGN_IN = markup`
      <p><a class="button" href="/sign-in">Sign in with your security key</a></p>`;

/**
 * Builds the page of a user who is not signed in.
 *
 * @param problem the reason why the last sign-in failed; empty if none has failed
 */
export function signedOutPage(problem = ''): PlainPage {
  return {
    title: TITLE,
    content: markup`
      <p>It stands in for an application of your company. It has no passwords: the svc service signs you in.</p>
      <p role="alert">${problem}</p>${SIGN_IN}`,
  };
}

/**
 * Builds the page of a signed-in user, with the claims of the ID token. Its script reloads the page
 * when the session has ended.
 */
export function signedInPage(claims: Readonly<Record<string, unknown>>): PlainPage {
  const rows = Object.entries(claims).map(
    ([name, value]) => markup`
        <dt>${name}</dt>
        <dd><code>${typeof value === 'string' ? value : JSON.stringify(value)}</code></dd>`,
  );
  return {
    title: TITLE,
    script: '/watch.js',
    content: markup`
      <p data-access="signed-in">You are signed in as <strong>${nameOf(claims)}</strong>. This application keeps a session of its own, and asks no other server at each view.</p>
      <h2>The claims of the ID token</h2>
      <dl>${rows}
      </dl>
      <p><a class="button" href="/sign-out">Sign out of this application</a></p>`,
  };
}

/** Builds the page of a user whose session at the application was ended by a logout token. */
export function endedPage(claims: Readonly<Record<string, unknown>>, at: Date): PlainPage {
  return {
    title: 'Access ended',
    content: markup`
      <p data-access="ended" role="alert">The service told this application at ${at.toISOString()} that the session of ${nameOf(claims)} has ended.</p>
      <p>The application ended its own session at once. The person logged out or left, or the session expired.</p>${SIGN_IN}`,
  };
}

function nameOf({ email, sub }: Readonly<Record<string, unknown>>): string {
  return String(email ?? sub);
}

/**
 * The script of {@link signedInPage}. Every two seconds it asks the application for the state of
 * the session, and reloads the page if the user is no longer signed in.
 */
export const WATCH_SCRIPT = `
setInterval(async () => {
  const answer = await fetch('/state').catch(() => undefined);
  if (answer?.ok && (await answer.json()).state !== 'signed-in') location.reload();
}, 2000);
`;
