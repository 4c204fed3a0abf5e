import { errors } from '../protocol/library.js';
import { scopeWords } from '../protocol/scopes.js';

/** The URI that says that a token is an access token (RFC 8693 §3). */
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const JWT = 'urn:ietf:params:oauth:token-type:jwt';

/** The parameters of a token exchange (RFC 8693 §2.1). */
export const EXCHANGE_PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'actor_token',
  'actor_token_type',
  'audience',
  'resource',
  'scope',
];

/** The supported parameters of a token exchange, as parsed. */
export interface ExchangeRequest {
  readonly subjectToken: string;
  /** The targets of the new token: the values of `resource` and `audience`. */
  readonly targets: readonly string[];
  /** The requested scopes. An empty list stands for all available scopes. */
  readonly scopes: readonly string[];
}

/**
 * Parses a request to exchange an access token for another access token. Actor tokens are not
 * supported.
 *
 * @throws InvalidRequest for a missing parameter, and for a parameter that is not supported
 */
export function exchangeRequest(params: Readonly<Record<string, unknown>>): ExchangeRequest {
  const { subject_token: token, subject_token_type: type, requested_token_type: wanted } = params;
  if (typeof token !== 'string' || typeof type !== 'string') {
    throw new errors.InvalidRequest(
      'missing required parameter(s) (subject_token, subject_token_type)',
    );
  }
  if (type !== ACCESS_TOKEN && type !== JWT) {
    throw new errors.InvalidRequest('only access tokens are exchanged');
  }
  if (wanted !== undefined && wanted !== ACCESS_TOKEN) {
    throw new errors.InvalidRequest('only access tokens are issued');
  }
  if (params['actor_token'] !== undefined || params['actor_token_type'] !== undefined) {
    throw new errors.InvalidRequest('actor tokens are not supported');
  }
  return {
    subjectToken: token,
    targets: [params['resource'] ?? [], params['audience'] ?? []].flat().map(String),
    scopes: scopeWords(params['scope'] as string | undefined),
  };
}
