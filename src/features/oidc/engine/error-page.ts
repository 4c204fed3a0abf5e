import { errors } from 'oidc-provider';

/** The text of a page for a person whose application sent a wrong request. */
export interface RefusalPage {
  readonly title: string;
  readonly detail: string;
}

const ASK_ITS_PEOPLE = 'Tell the people who run the application.';

/** The pages of the errors that have words of their own (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6). */
const PAGES: Readonly<Record<string, RefusalPage>> = {
  access_denied: {
    title: 'Access was refused',
    detail: 'The application got nothing. You can close this page.',
  },
  invalid_client: {
    title: 'Unknown application',
    detail: `The application that sent you here is not registered. ${ASK_ITS_PEOPLE}`,
  },
  invalid_redirect_uri: {
    title: 'Unknown return address',
    detail: `The application asked to send you to an address that it did not register. ${ASK_ITS_PEOPLE}`,
  },
  invalid_scope: {
    title: 'The application asks for too much',
    detail: `It asks for access that it cannot get here. ${ASK_ITS_PEOPLE}`,
  },
  unmet_authentication_requirements: {
    title: 'Your login is not enough',
    detail: 'The application asks for a kind of login that your security key does not give.',
  },
};

const NEEDS_A_PERSON: RefusalPage = {
  title: 'You are not signed in to the application',
  detail: 'It asked without showing you a page. Go back to it and sign in there.',
};

const OVER: RefusalPage = {
  title: 'This sign-in is over',
  detail:
    'It took too long, or it was begun in another browser. Go back to the application and start again.',
};

const INVALID: RefusalPage = {
  title: 'The application made a mistake',
  detail: `It sent you here with a request that cannot be answered. ${ASK_ITS_PEOPLE}`,
};

const LOGOUT: RefusalPage = {
  title: 'Logging out did not work',
  detail:
    'The application sent you here with a request that cannot be answered. You are still logged in.',
};

/** The errors of a request that may show no page, and cannot be answered without one. */
const WITHOUT_A_PAGE: ReadonlySet<string> = new Set([
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/**
 * Puts an error of the library into words for the person at the browser. The words of the library are for developers and go to
 * the log alone.
 *
 * @param code the `error` of the response
 */
export function refusalPage(code: string, error: Error, isLogout: boolean): RefusalPage {
  if (isLogout) return LOGOUT;
  if (error instanceof errors.SessionNotFound) return OVER;
  if (WITHOUT_A_PAGE.has(code)) return NEEDS_A_PERSON;
  return PAGES[code] ?? INVALID;
}
