import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { CALLBACK } from '../support/oauth-flow.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';

const HTML = { accept: 'text/html' };

describe('error pages', () => {
  let app: TestApp;
  let ada: Client;
  let clientId: string;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@errors.example'));
    ({ clientId } = await addApplication(
      app,
      { redirect_uris: [CALLBACK] },
      { owner: 'ada@errors.example' },
    ));
  });
  afterAll(() => app.close());

  const errorsOf = (browser: Client) =>
    Promise.all([
      browser.get('/nothing-here', { headers: HTML }),
      browser.get('/login?provider=unknown'),
      browser.get('/interaction/nothing', { headers: HTML }),
      browser.get('/oauth/authorize?client_id=unknown&response_type=code'),
      browser.get(`/oauth/authorize?client_id=${clientId}&redirect_uri=https://evil.example/`),
      browser.get('/oauth/authorize/nothing'),
      browser.get('/oauth/logout?id_token_hint=nonsense'),
    ]);

  it('10.27 keep the header of the user, and show none to a browser without a session', async () => {
    for (const page of await errorsOf(ada)) {
      expect(page.status).toBeGreaterThanOrEqual(400);
      expect(page.text).toContain('ada@errors.example');
      expect(page.text).toContain('action="/logout"');
      expect(page.text).toContain('href="/account"');
    }
    for (const page of await errorsOf(app.client())) {
      expect(page.text).toContain('class="site-header"');
      expect(page.text).not.toContain('action="/logout"');
    }
    const bootstrap = app.client();
    await bootstrap.signIn('ada@errors.example');
    const { text } = await bootstrap.get('/nothing-here', { headers: HTML });
    expect(text).toContain('ada@errors.example');
    expect(text).not.toContain('href="/account"');
  });

  it('10.27 show the reference under which the log records them', async () => {
    for (const page of await errorsOf(ada)) {
      const id = page.headers.get('x-fapi-interaction-id') ?? '';
      expect(page.text).toContain(`<code>${id}</code>`);
      expect(app.log.some((line) => line.includes(id))).toBe(true);
    }
  });

  it.each(['/account/x', '/device/x', '/interaction/x/y', '/login/x', '/enroll/x'])(
    '%s is a page for browsers, and a problem document for programs',
    async (path) => {
      const types = [HTML, { accept: 'application/json' }].map(async (headers) => {
        const { status, headers: of } = await ada.get(path, { headers, address: newAddress() });
        return [status, of.get('content-type')];
      });
      expect(await Promise.all(types)).toEqual([
        [404, 'text/html; charset=utf-8'],
        [404, 'application/problem+json; charset=utf-8'],
      ]);
    },
  );

  const actionsOf = ({ text }: Answer | { text: string }) =>
    [...text.matchAll(/<p class="actions"><a [^>]*href="([^"]*)"/g)].map(([, href]) => href);

  it.each([
    ['/nothing-here', '/'],
    ['/login?provider=unknown', '/login'],
    ['/enroll', '/account/keys'],
  ])('10.27 offer one action: %s leads to %s', async (path, href) => {
    const page = await ada.get(path, { headers: HTML });
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(actionsOf(page)).toEqual([href]);
    expect(page.text.match(/class="button primary"/g)).toHaveLength(1);
  });

  it('10.27 offer another try after a limit, and load no session then', async () => {
    const browser = app.client();
    let page = await browser.get('/device');
    for (let n = 0; n < 30 && page.status !== 429; n += 1) page = await browser.get('/device');
    expect([page.status, actionsOf(page)]).toEqual([429, ['']]);
  });

  it('10.27 contain no text of the library', async () => {
    const words = ['client is invalid', 'did not match', 'expired', 'could not', 'not found'];
    for (const page of await errorsOf(ada)) {
      for (const word of words) expect(page.text).not.toContain(word);
    }
  });

  it('10.27 of another host link to the configured address', async () => {
    const answer = await rawExchange(
      app.baseUrl,
      requestBytes(app.baseUrl, 'GET /login', ['Host: evil.example']),
    );
    expect([answer.status, actionsOf({ text: answer.body })]).toEqual([421, [`${app.baseUrl}/`]]);
    const program = await rawExchange(
      app.baseUrl,
      requestBytes(app.baseUrl, 'GET /v1/keys', ['Host: evil.example']),
    );
    expect(JSON.parse(program.body).detail).toContain(app.baseUrl);
  });

  it('10.27 stay pages when the session cannot be looked up', async () => {
    const stale = app.client();
    stale.setCookie('svc_session', 'x'.repeat(43));
    const page = await stale.get('/nothing-here', { headers: HTML });
    expect([page.status, page.text.includes('action="/logout"')]).toEqual([404, false]);
  });
});

describe('logging out', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('10.27 clears the pages of the session from the browser’s cache', async () => {
    const { client } = await app.enrolled('leaves@errors.example');
    const here = await client.post('/logout');
    expect(here.headers.get('clear-site-data')).toBe('"cache"');

    const { client: other } = await app.enrolled('leaves-too@errors.example');
    const asked = await other.get('/oauth/logout');
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(asked.text)?.[1] ?? '';
    const confirmed = await other.send('POST', '/oauth/logout/confirm', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
    });
    expect([confirmed.status, confirmed.headers.get('clear-site-data')]).toEqual([303, '"cache"']);
    const anywhere = await other.get('/');
    expect(anywhere.headers.get('clear-site-data')).toBeNull();
  });

  it('10.words does not say on any page that SSH certificates end', async () => {
    const { client } = await app.enrolled('claims@errors.example');
    const pages = [await client.get('/oauth/logout'), await client.get('/oauth/logout/success')];
    for (const { status, text } of pages) {
      expect([status, /everything/i.test(text)]).toEqual([200, false]);
      expect(text).toContain('SSH certificate stays good until it expires');
    }
  });
});
