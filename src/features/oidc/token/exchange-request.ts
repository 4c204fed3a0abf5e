import { errors } from 'oidc-provider';
import { scopeWords } from '../protocol/scopes.js';

/** RFC 8693 §3. */
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

/** What a client asks for, as far as we give it. */
export interface ExchangeRequest {
  readonly subjectToken: string;
  /** What the new token is to be for, by either parameter that says so. */
  readonly targets: readonly string[];
  /** None stands for all there are. */
  readonly scopes: readonly string[];
}

/**
 * Reads a request: an access token for an access token, and nobody acting for anybody.
 *
 * @throws InvalidRequest for what is missing, and for what is not supported
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
    throw new errors.InvalidRequest('acting for somebody by a token of theirs is not supported');
  }
  return {
    subjectToken: token,
    targets: [params['resource'] ?? [], params['audience'] ?? []].flat().map(String),
    scopes: scopeWords(params['scope'] as string | undefined),
  };
}
