import { describe, expect, it } from 'vitest';
import { changed, type FakeIdp, type Json } from '../support/fake-idp.js';
import { fakeIdp, refusal, settingsOf, upstreamSuite } from '../support/upstream.js';

const { problemsOf, signIn } = upstreamSuite();

const PERSONAL = '9188040d-6c67-4c5b-b112-36a304b66dad';
const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';

/**
 * Starts a stand-in for Microsoft's multi-tenant provider, with the given faults in its ID tokens.
 */
async function microsoft(
  wrong: (origin: string) => Json = () => ({}),
  placeholder = '{tenantid}',
): Promise<FakeIdp> {
  const idp = await fakeIdp({ path: '/organizations/v2.0' });
  const iss = `${idp.origin}/${TENANT}/v2.0`;
  const own = { iss, tid: TENANT, xms_edov: '1', email_verified: undefined };
  idp.misbehaviour = {
    document: changed({ issuer: `${idp.origin}/${placeholder}/v2.0` }),
    claims: changed({ ...own, ...wrong(idp.origin) }),
  };
  return idp;
}

describe('the "organizations" v2.0 issuer of Microsoft', () => {
  it.each(['{tenantid}', '%7Btenantid%7D'])(
    'signs in a tenant of the template with %s',
    async (placeholder) => {
      const idp = await microsoft(undefined, placeholder);
      expect(await signIn(idp)).toMatchObject({
        issuer: `${idp.origin}/${TENANT}/v2.0`,
        tenant: TENANT,
        email: 'ada@engine.test',
      });
    },
  );

  it.each<[string, (origin: string) => Json]>([
    ['whose `tid` is another tenant', () => ({ tid: 'other' })],
    ['without a `tid`', () => ({ tid: undefined })],
    [
      'of an issuer "undefined" without a `tid`',
      (origin) => ({ iss: `${origin}/undefined/v2.0`, tid: undefined }),
    ],
    [
      'whose issuer is the template itself',
      (origin) => ({ iss: `${origin}/{tenantid}/v2.0`, tid: '{tenantid}' }),
    ],
    ...['organizations', 'common', 'consumers'].map((tid): [string, (origin: string) => Json] => [
      `10.22 of the tenant "${tid}"`,
      (origin) => ({ iss: `${origin}/${tid}/v2.0`, tid }),
    ]),
    ['whose issuer is another host', () => ({ iss: `https://evil.test/${TENANT}/v2.0` })],
  ])('refuses a token %s', async (_what, wrong) => {
    expect((await refusal(signIn(await microsoft(wrong)))).code).toBe('sign_in_failed');
  });

  it.each([PERSONAL, PERSONAL.toUpperCase()])(
    '10.22 refuses the tenant of personal accounts (%s)',
    async (tid) => {
      const idp = await microsoft((origin) => ({ iss: `${origin}/${tid}/v2.0`, tid }));
      expect((await refusal(signIn(idp))).code).toBe('sign_in_refused');
    },
  );

  it('refuses an e-mail without xms_edov, naming the optional claim to add', async () => {
    const error = await refusal(signIn(await microsoft(() => ({ xms_edov: undefined }))));
    expect(error.code).toBe('sign_in_refused');
    expect(error.detail).toContain('xms_edov');
  });
});

describe("the issuer of Microsoft's personal accounts", () => {
  it.each([PERSONAL, 'consumers'])('10.22 stops the start (%s)', async (tenant) => {
    const idp = await fakeIdp();
    const issuer = `https://login.microsoftonline.com/${tenant}/v2.0`;
    expect(await problemsOf({ ...settingsOf(idp), issuer })).toEqual([
      expect.stringContaining('SVC_IDP_CORP_ISSUER: the issuer of'),
    ]);
  });
});
