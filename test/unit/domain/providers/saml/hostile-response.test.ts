import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseSamlResponse } from '#domain/providers/saml/saml-response.js';
import { verifiedBytes } from '#domain/providers/saml/signed-assertion.js';
import {
  assertionFields,
  assertionXml,
  responseFields,
  responseXml,
  signed,
} from '../../../../support/saml/forger.js';

/**
 * The processor time that a hostile response may cost, in milliseconds. A limit is needed, because
 * /saml/acs has no rate limit.
 */
const BUDGET = 300;
/**
 * The size of the largest message. The form may have 64 KiB, and its other fields need the rest.
 */
const MOST = 63_500;

const newPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
const keys = Array.from({ length: 8 }, () => newPair().publicKey);
const key = newPair().privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const asked = { requestId: '_r', acsUrl: 'https://sp.example/acs', audience: 'sp', relayState: '' };

const many = (count: number, write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => write(index)).join('');

/**
 * Writes a response whose assertion ends with this XML. The assertion is signed with a key that the
 * metadata does not have.
 */
function message(extra: string): string {
  const fields = { ...assertionFields(asked, 'https://idp.example', 'eve@evil.example'), extra };
  const assertion = signed(assertionXml(fields), { key });
  const xml = responseXml(responseFields(asked, 'https://idp.example'), assertion);
  return Buffer.from(xml).toString('base64');
}

/** Writes the largest message that fits into a form of 64 KiB. */
function largest(write: (count: number) => string): string {
  let count = 1;
  for (let step = 4096; step >= 1; step >>= 1) {
    if (message(write(count + step)).length < MOST) count += step;
  }
  return message(write(count));
}

/**
 * Returns the processor time of a function in milliseconds. Other processes of the machine do not
 * change it.
 */
function costOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('a response that no key of the metadata signed', () => {
  it.each([
    ['attributes', (n: number) => many(n, () => `<a${many(40, (i) => ` a${i}="1"`)}></a>`)],
    ['namespaces', (n: number) => many(n, () => `<a${many(38, (i) => ` xmlns:p${i}="1"`)}></a>`)],
    ['elements', (n: number) => many(Math.min(n, 900), () => '<b:a xmlns:b="c" d="e"></b:a>')],
    [
      'prefixes in use',
      (n: number) => many(n, () => `<a${many(18, (i) => ` xmlns:p${i}="u" p${i}:b="c"`)}></a>`),
    ],
  ])('costs little with as many %s as fit, also where the metadata has many keys', (_, write) => {
    const field = largest(write);
    const costs = [1, 2, 3].map(() =>
      costOf(() => {
        const { document, assertion } = parseSamlResponse(field);
        expect(() => verifiedBytes(document, assertion, keys)).toThrow(
          /of no key in the metadata|was changed/,
        );
      }),
    );
    expect(Math.min(...costs)).toBeLessThan(BUDGET);
  });
});
