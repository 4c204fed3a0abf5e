import { hash } from 'node:crypto';
import { systemRandom } from '../clock.js';
import { bearerOf, publicPart } from './app-api.js';
import {
  BAD_CREDENTIALS,
  NOT_FOUND,
  problem,
  type StandInAnswer,
  type StandInRequest,
} from './http-answer.js';
import type { StandInState, StandInUser } from './stand-in-state.js';

/**
 * Answers requests for the pages on which a user authorizes the GitHub App; undefined for any other
 * path.
 */
export function oauthPages(
  state: StandInState,
  { method, url, body }: StandInRequest,
): StandInAnswer | undefined {
  if (method === 'GET' && url.pathname === '/login/oauth/authorize') {
    return authorize(state, url.searchParams);
  }
  if (method === 'POST' && url.pathname === '/login/oauth/access_token') {
    return exchange(state, new URLSearchParams(body));
  }
  return undefined;
}

/** Authorizes the GitHub App for the user of the browser, without asking, and redirects back. */
function authorize(state: StandInState, query: URLSearchParams): StandInAnswer {
  const redirectUri = query.get('redirect_uri') ?? '';
  const isKnown = query.get('client_id') === state.clientId && URL.canParse(redirectUri);
  if (!isKnown || query.get('code_challenge_method') !== 'S256') return NOT_FOUND;
  const code = systemRandom.token(15);
  const challenge = query.get('code_challenge') ?? '';
  state.codes.set(code, { user: state.browserUser, challenge, redirectUri });
  const back = new URL(redirectUri);
  back.searchParams.set('code', code);
  back.searchParams.set('state', query.get('state') ?? '');
  return { status: 302, text: '', headers: { location: back.href } };
}

/**
 * Exchanges a code for a token of the user. For an invalid code, GitHub answers 200 with an error
 * in the body.
 */
function exchange(state: StandInState, form: URLSearchParams): StandInAnswer {
  const code = form.get('code') ?? '';
  const found = state.codes.get(code);
  state.codes.delete(code);
  const isClient =
    form.get('client_id') === state.clientId && form.get('client_secret') === state.clientSecret;
  if (!isClient) return { status: 200, json: { error: 'incorrect_client_credentials' } };
  const isProved =
    found?.challenge === hash('sha256', form.get('code_verifier') ?? '', 'base64url') &&
    found.redirectUri === form.get('redirect_uri');
  if (!found || !isProved) {
    const error = 'bad_verification_code';
    const description = 'The code passed is incorrect or expired.';
    return { status: 200, json: { error, error_description: description } };
  }
  const token = `ghu_${systemRandom.token(27)}`;
  state.userTokens.set(token, { user: found.user, revoked: false });
  return { status: 200, json: { access_token: token, token_type: 'bearer', scope: '' } };
}

/**
 * Answers API requests that are sent with a user's token, and requests that revoke such a token.
 * Returns undefined for any other path.
 */
export function userApi(
  state: StandInState,
  request: StandInRequest,
  path: string,
): StandInAnswer | undefined {
  if (path === `/applications/${state.clientId}/token` && request.method === 'DELETE') {
    return revokeUserToken(state, request);
  }
  if (path !== '/user' && !path.startsWith('/user/')) return undefined;
  const known = state.userTokens.get(bearerOf(request));
  if (!known || known.revoked) return BAD_CREDENTIALS;
  const { user } = known;
  if (path === '/user') return { status: 200, json: { id: user.id, login: user.login } };
  if (path === '/user/installations') return installations(state, user, request.url);
  if (path !== '/user/memberships/orgs') return NOT_FOUND;
  const memberships = [...state.installations.values()]
    .filter(({ id, account }) => user.sees.includes(id) && account.type === 'Organization')
    .map(({ account }) => ({
      role: user.owns.includes(account.id) ? 'admin' : 'member',
      state: 'active',
      organization: { id: account.id, login: account.login },
    }));
  return { status: 200, json: memberships };
}

/** Returns a page of the installations that a user sees, with the URL of the next page. */
function installations(state: StandInState, user: StandInUser, url: URL): StandInAnswer {
  const all = [...state.installations.values()].filter(({ id }) => user.sees.includes(id));
  const page = Number(url.searchParams.get('page') ?? 1);
  const size = Math.min(state.pageSize, Number(url.searchParams.get('per_page') ?? 30));
  const shown = all.slice((page - 1) * size, page * size);
  const next = new URL(url);
  next.searchParams.set('page', String(page + 1));
  return {
    status: 200,
    json: { total_count: all.length, installations: shown.map(publicPart) },
    headers: page * size < all.length ? { link: `<${next.href}>; rel="next"` } : {},
  };
}

function revokeUserToken(
  state: StandInState,
  { authorization, body }: StandInRequest,
): StandInAnswer {
  const basic = Buffer.from(`${state.clientId}:${state.clientSecret}`).toString('base64');
  if (authorization !== `Basic ${basic}`) return BAD_CREDENTIALS;
  const { access_token: token } = JSON.parse(body) as { readonly access_token: string };
  const known = state.userTokens.get(token);
  if (!known) return problem(422, 'Validation Failed');
  known.revoked = true;
  return { status: 204 };
}
