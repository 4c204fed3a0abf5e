import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '#platform/clock/clock.js';
import { systemRandom, type Random } from '#platform/clock/random.js';
import type { Config } from '#platform/config/config.js';
import { deriveKey } from '#platform/crypto/sealed-secret.js';

/** The seconds for which a response to an authentication request is accepted. */
export const REQUEST_TTL = 600;
/**
 * The seconds by which the clocks of two replicas may differ. A replica accepts a request of
 * another one whose time is this far in the future.
 */
const REPLICA_SKEW = 60;

const TIME_BYTES = 6;
const RANDOM_BYTES = 16;
const MAC_BYTES = 16;
const SHAPE = /^_([\w-]{51})$/;

/**
 * Makes and recognizes the ids of SAML authentication requests. An id contains its time and a
 * message authentication code (MAC). So any replica recognizes the requests of this deployment, and
 * no request needs a row in the database.
 */
export class RequestIds {
  readonly #keys: readonly Buffer[];

  constructor(
    { root, previousRoot }: Config['secrets'],
    private readonly clock: Clock,
    private readonly random: Random = systemRandom,
  ) {
    const secrets = previousRoot === undefined ? [root] : [root, previousRoot];
    this.#keys = secrets.map((secret) => deriveKey(secret, 'saml request id', 32));
  }

  /**
   * Makes the id of an authentication request to a provider. It has the form of an xs:ID (XML
   * Schema 2 §3.3.8), as SAML demands.
   */
  make(provider: string): string {
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(this.clock.seconds(), 0, TIME_BYTES);
    const body = Buffer.concat([time, this.random.bytes(RANDOM_BYTES)]);
    const [key] = this.#keys;
    if (!key) throw new Error('no root secret');
    return `_${Buffer.concat([body, macOf(key, provider, body)]).toString('base64url')}`;
  }

  /**
   * Returns true for the id of a request that this deployment sent to the provider within the last
   * 10 minutes (`REQUEST_TTL`).
   */
  isRecent(provider: string, id: string): boolean {
    const encoded = SHAPE.exec(id)?.[1];
    if (encoded === undefined) return false;
    const bytes = Buffer.from(encoded, 'base64url');
    if (bytes.toString('base64url') !== encoded) return false;
    const body = bytes.subarray(0, TIME_BYTES + RANDOM_BYTES);
    const mac = bytes.subarray(TIME_BYTES + RANDOM_BYTES);
    const isOurs = this.#keys.some((key) => timingSafeEqual(macOf(key, provider, body), mac));
    const age = this.clock.seconds() - body.readUIntBE(0, TIME_BYTES);
    return isOurs && age >= -REPLICA_SKEW && age <= REQUEST_TTL;
  }
}

function macOf(key: Buffer, provider: string, body: Buffer): Buffer {
  const mac = createHmac('sha256', key).update(`${provider}\0`).update(body).digest();
  return mac.subarray(0, MAC_BYTES);
}

/**
 * Returns the name of the cookie in which the browser keeps the state of a sign-in: 16 random
 * characters of the request id. They follow `_` and the 8 characters of the time.
 */
export function keptName(requestId: string): string {
  return requestId.slice(9, 25);
}
