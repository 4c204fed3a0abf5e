import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { newPkce, postForm } from '../support/oauth-flow.js';
import { CONFORMANCE_PAGE, OP, SUITE, SuiteBrowser, type Visit } from '../support/suite-browser.js';

const TOKEN = 'a token that only the suite of tests knows';
const CALLBACK = `${SUITE}/test/a/svc/callback`;
const AFTER_LOGOUT = `${SUITE}/test/a/svc/post_logout_redirect`;
const FAPI = 'fapi2-security-profile-final-';

describe('the configuration of the conformance suite, to the letter', () => {
  let app: TestApp;
  let client: { readonly client_id: string; readonly client_secret: string };
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN } });
    client = (await register({ post_logout_redirect_uris: [AFTER_LOGOUT] })).json;
  });
  afterAll(() => app.close());

  const register = (more: object) =>
    app.client().post('/oauth/register', { redirect_uris: [CALLBACK], ...more });
  const browserOf = (module = '') => new SuiteBrowser(app.client(), TOKEN, module);
  const basic = () => ({
    authorization: `Basic ${btoa(`${client.client_id}:${client.client_secret}`)}`,
  });
  const { verifier, challenge } = newPkce();
  const request = (more: Readonly<Record<string, string>> = {}) => ({
    client_id: client.client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid',
    state: 's',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...more,
  });
  const at = (path: string, fields: Readonly<Record<string, string>>) =>
    `${app.baseUrl}${path}?${new URLSearchParams(fields).toString()}`;
  const authorization = (more = {}) => at('/oauth/authorize', request(more));
  const codeIn = ({ url }: Visit) => new URL(url).searchParams.get('code');

  it('logs in, arrives at the client, and gives no picture to a module that also takes a callback', async () => {
    const visit = await browserOf().visit(authorization(), true);
    expect(visit).toEqual({
      url: expect.stringContaining(`${CALLBACK}?code=`),
      picture: undefined,
    });
  });

  it.each([
    ['an unregistered redirect_uri', { redirect_uri: `${CALLBACK}2` }],
    ['the address of the client in another parameter', { client_id: 'x', ui_locales: CALLBACK }],
  ])('gives the picture of the error page for %s', async (_, more) => {
    const { url, picture } = await browserOf().visit(authorization(more), true);
    expect(url).toContain('/oauth/authorize');
    expect(picture).toContain('Reference:');
  });

  it.each([
    ['oidcc-prompt-login', { prompt: 'login' }],
    ['oidcc-max-age-1', { max_age: '1' }],
  ])('gives %s the picture of the second login page, and logs in again', async (module, more) => {
    const browser = browserOf(module);
    expect((await browser.visit(authorization())).picture).toBeUndefined();
    // In a real run of the suite, seconds pass between the two visits. Here a login within the same
    // second would count as the new one.
    await app.dataSource.query("UPDATE sessions SET auth_time = auth_time - interval '2 s'");
    const second = await browser.visit(authorization(more), true);
    expect(codeIn(second)).toBeTruthy();
    expect(second.picture).toContain('id="complete-login-token"');
  });

  it('denies the login for user-rejects-authentication', async () => {
    const { url } = await browserOf(`${FAPI}user-rejects-authentication`).visit(authorization());
    expect(new URL(url).searchParams.get('error')).toBe('access_denied');
  });

  it('does not log in at the first of two visits with one request_uri, and at the second it does', async () => {
    const pushed = await postForm(app, '/oauth/par', request(), basic());
    const once = { client_id: client.client_id, request_uri: String(pushed.json.request_uri) };
    const module = `${FAPI}par-ensure-reused-request-uri-prior-to-auth-completion-succeeds`;
    const browser = browserOf(module);
    const first = await browser.visit(at('/oauth/authorize', once), true);
    expect(first.url).toContain('/login');
    expect(first.picture).toContain('id="complete-login-token"');
    expect(codeIn(await browser.visit(at('/oauth/authorize', once)))).toBeTruthy();
  });

  describe('at a logout', () => {
    /**
     * Logs in, and visits the logout page with the parameters that `fields` makes from the ID
     * token.
     */
    const logOut = async (fields: (hint: string) => Readonly<Record<string, string>>) => {
      const browser = browserOf();
      const code = codeIn(await browser.visit(authorization())) ?? '';
      const redeemed = { grant_type: 'authorization_code', code, code_verifier: verifier };
      const sent = { ...redeemed, redirect_uri: CALLBACK };
      const { json } = await postForm(app, '/oauth/token', sent, basic());
      return browser.visit(at('/oauth/logout', fields(String(json.id_token))), true);
    };
    const back = { post_logout_redirect_uri: AFTER_LOGOUT, state: 'x' };
    const unsigned = (hint: string) =>
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${hint.split('.')[1]}.`;

    it('goes back to the client with its state', async () => {
      const { url } = await logOut((hint) => ({ id_token_hint: hint, ...back }));
      expect(url).toBe(`${AFTER_LOGOUT}?state=x`);
    });

    it.each<[string, (hint: string) => Readonly<Record<string, string>>]>([
      [
        'bad-post-logout-redirect-uri',
        (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: `${SUITE}/other` }),
      ],
      [
        'query-added-to-post-logout-redirect-uri',
        (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: `${AFTER_LOGOUT}?foo=bar` }),
      ],
      ['modified-id-token-hint', (hint) => ({ id_token_hint: unsigned(hint), ...back })],
      ['bad-id-token-hint', (hint) => ({ id_token_hint: `${hint.slice(0, -8)}AAAAAAAA`, ...back })],
    ])('gives %s the picture of an error, and does not go back', async (_, fields) => {
      const { url, picture } = await logOut(fields);
      expect(new URL(url).origin).toBe(OP);
      expect(picture).toContain('Reference:');
    });

    it('gives no-id-token-hint the picture of the question, and does not go back', async () => {
      const { url, picture } = await logOut(() => back);
      expect(new URL(url).origin).toBe(OP);
      expect(picture).toContain('Log out?');
    });

    it.each<[string, (hint: string) => Readonly<Record<string, string>>]>([
      ['no-params', () => ({})],
      ['only-state', () => ({ state: 'x' })],
      ['no-post-logout-redirect-uri', (hint) => ({ id_token_hint: hint, state: 'x' })],
    ])('gives %s the picture of the end of the session', async (_, fields) => {
      expect((await logOut(fields)).picture).toContain('Your session has ended');
    });
  });

  it('the plan of third-party initiated login: the address is kept, and one of http is refused', async () => {
    const initiate_login_uri = `${SUITE}/test/a/svc/initiate_login`;
    const { status, json } = await register({ initiate_login_uri });
    expect([status, json.initiate_login_uri]).toEqual([201, initiate_login_uri]);
    const read = await app.client().get(new URL(json.registration_client_uri as string).pathname, {
      headers: { authorization: `Bearer ${json.registration_access_token}` },
      address: newAddress(),
    });
    expect(read.json.initiate_login_uri).toBe(initiate_login_uri);
    const refused = await register({ initiate_login_uri: initiate_login_uri.replace('s:', ':') });
    expect([refused.status, refused.json.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it('10.16 lists no plan that cannot pass', () => {
    const plans = [...CONFORMANCE_PAGE.matchAll(/^\| `([a-z0-9-]+-test-plan)`/gm)];
    expect(plans).toHaveLength(8);
    expect(plans.map(([, plan]) => plan)).not.toContain('oidcc-dynamic-certification-test-plan');
    for (const variant of ['plain_oauth', 'fapi_client_credentials_grant', 'unsigned']) {
      expect(CONFORMANCE_PAGE).toContain(`\`${variant}\``);
    }
    expect(CONFORMANCE_PAGE).toContain('## Warnings that are expected');
  });
});
