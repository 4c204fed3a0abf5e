import type { IncomingMessage } from 'node:http';
import { systemRandom } from '../clock.js';
import type { SigningCredentials } from './request-signature.js';

/** The answer to a request: a JSON document with a token, or a short text. */
interface SignInAnswer {
  readonly status: number;
  readonly body: string;
  readonly type: string;
}

/**
 * The tokens of the sign-in to the web console of AWS (`/federation`). The action `getSigninToken`
 * exchanges the credentials of a role session for a token. The action `login` signs a browser in by
 * the token.
 */
export class SignInTokens<Session extends SigningCredentials> {
  /** The requests for a token, each with its method and its parameters. */
  readonly requests: { readonly method: string; readonly parameters: URLSearchParams }[] = [];
  /** The sign-ins of browsers: the role session, and the page to which the browser goes. */
  readonly signIns: { readonly session: Session; readonly destination: string }[] = [];
  readonly #tokens = new Map<string, Session>();

  /**
   * Answers a request to the sign-in of the console.
   *
   * @param find returns the role session of an access key id
   */
  answer(
    { method = '', url = '' }: IncomingMessage,
    body: string,
    find: (accessKeyId: string) => Session | undefined,
  ): SignInAnswer {
    const parameters =
      method === 'POST' ? new URLSearchParams(body) : new URL(url, 'http://stand-in').searchParams;
    if (parameters.get('Action') === 'login') return this.#signIn(parameters);
    this.requests.push({ method, parameters });
    const session = sessionOf(parameters, find);
    if (parameters.get('Action') !== 'getSigninToken' || !session) {
      return { status: 400, body: 'Bad request', type: 'text/plain' };
    }
    const token = systemRandom.token(48);
    this.#tokens.set(token, session);
    return { status: 200, body: JSON.stringify({ SigninToken: token }), type: 'application/json' };
  }

  #signIn(parameters: URLSearchParams): SignInAnswer {
    const session = this.#tokens.get(parameters.get('SigninToken') ?? '');
    const destination = parameters.get('Destination');
    if (!session || destination === null) {
      return { status: 400, body: 'The token is not valid', type: 'text/plain' };
    }
    this.signIns.push({ session, destination });
    return { status: 200, body: 'Signed in', type: 'text/plain' };
  }
}

function sessionOf<Session extends SigningCredentials>(
  parameters: URLSearchParams,
  find: (accessKeyId: string) => Session | undefined,
): Session | undefined {
  const given = JSON.parse(parameters.get('Session') ?? '{}') as Record<string, unknown>;
  const session = find(String(given['sessionId']));
  const isGenuine =
    session?.secretAccessKey === given['sessionKey'] &&
    session?.sessionToken === given['sessionToken'];
  return isGenuine ? session : undefined;
}
