import { createPublicKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SpKeys } from '#domain/providers/saml/sp-keys/sp-keys.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { fileDatabase } from '../support/file-database.js';
import { rows } from '../support/rows.js';
import { TestClock } from '../support/test-clock.js';

const DAY = 86_400_000;
const FIRST = 'the first root secret of this test file';
const SECOND = 'the second root secret of this test file';

describe('the key of the SAML service provider', () => {
  const dataSource = fileDatabase();
  const clock = new TestClock();

  const open = (root = FIRST, previousRoot?: string) => {
    const http = { baseUrl: 'https://svc.test' } as never;
    return SpKeys.open({
      config: { http, secrets: { root, previousRoot } },
      dataSource: dataSource(),
      clock,
    });
  };
  const certificatesOf = (keys: SpKeys) =>
    keys.certificates().map((der) => new X509Certificate(Buffer.from(der, 'base64')));
  /** Returns the index of the published certificate whose key signs, or -1. */
  const signerOf = (keys: SpKeys) => {
    const spki = createPublicKey(keys.signingKey()).export({ type: 'spki', format: 'der' });
    return certificatesOf(keys).findIndex(({ publicKey }) =>
      publicKey.export({ type: 'spki', format: 'der' }).equals(spki),
    );
  };

  it('is made once by replicas that start together: RSA of 3072 bits, self-signed', async () => {
    const [one, other] = await Promise.all([open(), open()]);
    expect(one.signingKey()).toBe(other.signingKey());
    const [certificate, ...more] = certificatesOf(one);
    if (!certificate) throw new Error('no certificate is published');
    expect(more).toEqual([]);
    expect(certificate.publicKey.asymmetricKeyDetails?.modulusLength).toBe(3072);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subject).toBe('CN=svc.test SAML');
  });

  it('is sealed in the database, and sealed again when the root secret changes', async () => {
    const key = (await open()).signingKey();
    const [stored] = await rows<{ sealed: string }>(
      dataSource(),
      'SELECT sealed FROM saml_sp_keys',
    );
    expect(stored?.sealed).not.toContain('PRIVATE');
    await expect(open(SECOND)).rejects.toBeInstanceOf(ConfigProblems);
    expect((await open(SECOND, FIRST)).signingKey()).toBe(key);
    expect((await open(SECOND)).signingKey()).toBe(key);
    expect((await open(FIRST, SECOND)).signingKey()).toBe(key);
  });

  it('is published for 7 days before it signs, and until its certificate ends', async () => {
    const keys = await open();
    const first = keys.signingKey();
    clock.advance(1058 * DAY);
    await keys.renew();
    expect(certificatesOf(keys)).toHaveLength(1);

    clock.advance(2 * DAY);
    const replica = await open();
    await Promise.all([keys.renew(), replica.renew()]);
    expect([certificatesOf(keys).length, keys.signingKey() === first]).toEqual([2, true]);
    expect(replica.certificates()).toEqual(keys.certificates());

    clock.advance(7 * DAY - 1000);
    expect(signerOf(keys)).toBe(0);
    clock.advance(1000);
    expect(signerOf(keys)).toBe(1);
    expect(signerOf(replica)).toBe(1);

    clock.advance(30 * DAY);
    expect([certificatesOf(keys).length, signerOf(keys)]).toEqual([1, 0]);
  });

  it('is replaced at once where every certificate has ended', async () => {
    clock.advance(2000 * DAY);
    const keys = await open();
    expect([certificatesOf(keys).length, signerOf(keys)]).toEqual([1, 0]);
  });
});
