import { errors } from '../protocol/library.js';

/**
 * The title and the text of the page that a user sees if an OAuth request of an application fails.
 */
export interface ClientErrorPage {
  readonly title: string;
  readonly detail: string;
}

const TELL_OPERATOR = 'Tell the operator of the application.';

/**
 * The error pages by the `error` of the OAuth response (RFC 6749 §4.1.2.1, OpenID Connect Core
 * §3.1.2.6).
 */
const PAGES: Readonly<Record<string, ClientErrorPage>> = {
  access_denied: {
    title: 'Access was refused',
    detail: 'The application got nothing. You can close this page.',
  },
  invalid_client: {
    title: 'Unknown application',
    detail: `The application that sent you here is not registered. ${TELL_OPERATOR}`,
  },
  invalid_redirect_uri: {
    title: 'Unknown return URL',
    detail: `The application asked to send you to a URL that it did not register. ${TELL_OPERATOR}`,
  },
  invalid_scope: {
    title: 'The application asks for too much',
    detail: `It asks for access that it cannot get here. ${TELL_OPERATOR}`,
  },
  unmet_authentication_requirements: {
    title: 'Your login is not enough',
    detail: 'The application asks for a kind of login that your security key does not give.',
  },
};

const NEEDS_LOGIN: ClientErrorPage = {
  title: 'You are not signed in to the application',
  detail: 'It asked without showing you a page. Go back to it and sign in there.',
};

const OVER: ClientErrorPage = {
  title: 'This sign-in is over',
  detail:
    'It took too long, or it was begun in another browser. Go back to the application and start again.',
};

const INVALID: ClientErrorPage = {
  title: 'The application made a mistake',
  detail: `It sent you here with a request that cannot be answered. ${TELL_OPERATOR}`,
};

const NOT_LOGGED_OUT = 'Logging out did not work';

const LOGOUT: ClientErrorPage = {
  title: NOT_LOGGED_OUT,
  detail:
    'The application sent you here with a request that cannot be answered. You are still logged in.',
};

/**
 * The text for each parameter of a logout request that can be wrong (RP-Initiated Logout §2). If
 * several parameters are wrong, the page names the first of them in this list.
 */
const WRONG_PARAMETERS: Readonly<Record<string, string>> = {
  post_logout_redirect_uri: 'it is not a URL that the application registered',
  client_id: 'it is not the application that the request is about, or it is not registered',
  id_token_hint: 'it is not an ID token of this service for a registered application',
};

/**
 * Finds the wrong parameter of a logout request in the OAuth library's error text. For an
 * unknown `client_id`, the text does not name the parameter.
 */
function wrongParameterOf({ message, ...error }: Error): string | undefined {
  const text = 'error_description' in error ? String(error.error_description) : message;
  if (text === 'client is invalid') return 'client_id';
  return Object.keys(WRONG_PARAMETERS).find((name) => text.includes(name));
}

function logoutErrorPage(error: Error): ClientErrorPage {
  const name = wrongParameterOf(error);
  if (name === undefined) return LOGOUT;
  const detail = `The application sent you here with a wrong ${name}: ${WRONG_PARAMETERS[name]}. You are still logged in. ${TELL_OPERATOR}`;
  return { title: NOT_LOGGED_OUT, detail };
}

/**
 * The errors of requests with `prompt=none`. With that parameter the client forbids every page, but
 * the request cannot go on without one, such as the login page.
 */
const WITHOUT_A_PAGE: ReadonlySet<string> = new Set([
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/**
 * Returns the error page for the user of a browser. The OAuth library's own text is for developers,
 * and is only logged.
 *
 * @param code the `error` of the response
 */
export function errorPage(code: string, error: Error, isLogout: boolean): ClientErrorPage {
  if (isLogout) return logoutErrorPage(error);
  if (error instanceof errors.SessionNotFound) return OVER;
  if (WITHOUT_A_PAGE.has(code)) return NEEDS_LOGIN;
  return PAGES[code] ?? INVALID;
}
