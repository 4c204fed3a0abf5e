import { systemClock, type Clock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import type { Adapters } from '../storage/adapters.service.js';

/**
 * The model (the OAuth library's word for a kind of record) under which authorization requests that
 * came by POST are stored.
 */
const MODEL = 'PostedRequest';
/**
 * The prefix of the `request_uri` that refers to a stored request that came by POST. It differs
 * from that of a pushed request (RFC 9126 §2.2), for which a client has authenticated.
 */
const PREFIX = 'urn:svc:params:oauth:posted-request:';
/**
 * The seconds for which a request that came by POST is stored. The time is short, because the
 * browser follows the redirect at once.
 */
const LIFETIME = 60;
/** The largest number of expired rows that the storage of one request removes. */
const MOST_REMOVED = 20;
/** The largest number of characters of a client's id. */
const LONGEST_CLIENT_ID = 256;

/**
 * Stores, for a minute, an authorization request that came by POST and is too long for a URL. Each
 * call also removes some expired rows, so that a flood of requests leaves few until the next
 * clean-up.
 *
 * @returns the query that refers to the request at the authorization endpoint
 */
export async function storePostedRequest(
  request: URLSearchParams,
  adapters: Adapters,
  clock: Clock = systemClock,
): Promise<URLSearchParams> {
  await adapters.removeExpired(MOST_REMOVED);
  const secret = systemRandom.token(32);
  const payload = { query: request.toString(), exp: clock.seconds() + LIFETIME };
  await adapterOf(adapters).upsert(secret, payload, LIFETIME);
  const clientId = boundClient(request);
  return new URLSearchParams({
    ...(clientId !== undefined && { client_id: clientId }),
    request_uri: PREFIX + secret,
  });
}

/** Returns true if a query refers to a stored authorization request that came by POST. */
export function isReference(query: URLSearchParams): boolean {
  return query.get('request_uri')?.startsWith(PREFIX) === true;
}

/**
 * Finds the stored request to which a query refers; undefined if it has expired, or belongs to
 * another client.
 */
export async function findPostedRequest(
  query: URLSearchParams,
  adapters: Adapters,
  clock: Clock = systemClock,
): Promise<URLSearchParams | undefined> {
  const secret = (query.get('request_uri') ?? '').slice(PREFIX.length);
  const found = await adapterOf(adapters).find(secret);
  if (!found) return undefined;
  const { query: stored, exp } = found as { readonly query: string; readonly exp: number };
  const request = new URLSearchParams(stored);
  const isOfClient = (boundClient(request) ?? null) === query.get('client_id');
  return isOfClient && exp > clock.milliseconds() / 1000 ? request : undefined;
}

function adapterOf(adapters: Adapters) {
  return adapters.of(MODEL, () => undefined);
}

/**
 * Returns the id of the client that alone may use a stored request. It is undefined if the request
 * names no client, several clients, or an id that is too long.
 */
function boundClient(request: URLSearchParams): string | undefined {
  const [clientId, ...others] = request.getAll('client_id');
  const isOne = others.length === 0 && (clientId?.length ?? 0) <= LONGEST_CLIENT_ID;
  return isOne ? clientId : undefined;
}
