import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { Client } from '../../support/client.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { count } from '../../support/rows.js';
import {
  attackSuite,
  expectAccepted,
  expectAttackRefused,
  expectRefused,
  honestly,
  MALLORY,
} from '../../support/saml/attack-suite.js';
import { startBalancer, type Balancer } from '../../support/saml/balancer.js';
import { startForgedProvider, type ForgedProvider } from '../../support/saml/forged-provider.js';
import { samlEnvironment } from '../../support/saml/saml-app.js';
import {
  beginSamlSignIn,
  comeBack,
  encoded,
  readRequest,
  type AcsForm,
  type Landed,
} from '../../support/saml/saml-browser.js';

const isIn = ({ status, url }: Landed) => status === 200 && url.pathname === '/enroll';

describe('a SAML response that was used before', () => {
  const suite = attackSuite();
  /**
   * Begins a sign-in in a new client, and signs a response to it with some changes. Returns the
   * client and the form.
   */
  async function written(
    changes?: Parameters<ForgedProvider['respond']>[1],
  ): Promise<{ client: Client; form: AcsForm }> {
    const client = suite.app.client();
    const asked = await beginSamlSignIn(client, 'corp');
    const samlResponse = encoded(suite.corp.respond(asked, { email: MALLORY, ...changes }));
    return { client, form: { samlResponse, relayState: asked.relayState } };
  }

  it('is refused in the same browser', async () => {
    const { client, form } = await written();
    const again = client.copy();
    expect(isIn(await comeBack(client, form))).toBe(true);
    await expectRefused(suite, again, () => comeBack(again, form), /assertion was used before/);
  });

  it('of which 20 copies arrive at once signs in once', async () => {
    const { client, form } = await written();
    const copies = Array.from({ length: 20 }, () => client.copy());
    const pages = await Promise.all(copies.map((copy) => comeBack(copy, form)));
    expect(pages.filter(isIn)).toHaveLength(1);
    expect(pages.filter(({ status }) => status >= 400 && status < 500)).toHaveLength(19);
  });

  it('is of the last sign-in that another site began: a site cannot fill the browser with cookies', async () => {
    const client = suite.app.client();
    const headers = { 'sec-fetch-site': 'cross-site' };
    const names: (string | undefined)[] = [];
    let location = '';
    for (let turn = 0; turn < 3; turn += 1) {
      const away = await client.get('/login?provider=corp&redirect_to=/keys', { headers });
      location = away.headers.get('location') ?? '';
      const cookies = away.headers.getSetCookie().map((cookie) => cookie.split('=')[0]);
      names.push(cookies.find((name) => name?.startsWith('svc_sign_in_')));
    }
    expect(names).toEqual(Array.from({ length: 3 }, () => 'svc_sign_in_of_other_site'));
    const asked = readRequest(new URL(location));
    const samlResponse = encoded(suite.corp.respond(asked, { email: MALLORY }));
    expect(isIn(await comeBack(client, { samlResponse, relayState: '' }))).toBe(true);
  });

  it('is refused in the answer to another request, when the assertion has the same ID', async () => {
    const id = '_the-same-assertion';
    const first = await written({ assertion: { id } });
    const second = await written({ assertion: { id } });
    expect(isIn(await comeBack(first.client, first.form))).toBe(true);
    await expectRefused(
      suite,
      second.client,
      () => comeBack(second.client, second.form),
      /assertion was used before/,
    );
  });

  it('is refused in another browser, with its own RelayState or with that of the first', async () => {
    await expectAccepted(suite, honestly());
    const { form } = await written();
    const other = suite.app.client();
    const { relayState } = await beginSamlSignIn(other, 'corp');
    await expectRefused(suite, other, () => comeBack(other, form), /state is invalid/);
    await expectRefused(
      suite,
      other,
      () => comeBack(other, { ...form, relayState }),
      /assertion was used before/,
    );
  });

  it('is refused in a browser that began no sign-in', async () => {
    const { form } = await written();
    const fresh = suite.app.client();
    await expectRefused(suite, fresh, () => comeBack(fresh, form), /state is invalid/);
  });
});

describe('a SAML response of another configured provider', () => {
  const suite = attackSuite();

  it('is refused in a sign-in that began at the first', async () => {
    await expectAccepted(suite, honestly(), MALLORY, 'attr');
    await expectAttackRefused(suite, {
      forged: (asked) => suite.attr.respond(asked, { email: MALLORY }),
      reason: /names another provider/,
    });
  });

  it("is refused with the first provider's name, signed by the second", async () => {
    await expectAttackRefused(suite, {
      forged: (asked) =>
        suite.corp.respond(asked, { email: MALLORY, signature: suite.attr.signer }),
      reason: /signature of no key/,
    });
  });

  it("is refused with the second provider's name, signed by the first", async () => {
    await expectAttackRefused(suite, {
      forged: (asked) =>
        suite.attr.respond(asked, { email: MALLORY, signature: suite.corp.signer }),
      reason: /names another provider/,
    });
  });

  it("is refused with the first provider's name around an assertion of the second", async () => {
    await expectAttackRefused(suite, {
      forged: (asked) =>
        suite.attr.respond(asked, {
          email: MALLORY,
          response: { issuer: suite.corp.entityId },
        }),
      reason: /signature of no key/,
    });
  });

  it('is refused in the answer to a request that this browser took to the second', async () => {
    await expectAccepted(suite, honestly());
    const client = suite.app.client();
    await beginSamlSignIn(client, 'corp');
    const { relayState, ...asked } = await beginSamlSignIn(client, 'attr');
    const samlResponse = encoded(suite.corp.respond({ relayState, ...asked }, { email: MALLORY }));
    await expectRefused(
      suite,
      client,
      () => comeBack(client, { samlResponse, relayState }),
      /names another provider/,
    );
  });
});

describe('a SAML response at two replicas behind a load balancer', () => {
  let balancer: Balancer;
  let database: TestDatabase;
  let corp: ForgedProvider;
  let dataDir: string;
  const replicas: TestApp[] = [];
  beforeAll(async () => {
    [balancer, database, corp, dataDir] = await Promise.all([
      startBalancer(),
      createTestDatabase(),
      startForgedProvider('corp'),
      makeTemporaryDirectory(),
    ]);
    const options = {
      database,
      environment: {
        ...samlEnvironment({ corp: { metadataUrl: corp.metadataUrl } }),
        SVC_BASE_URL: balancer.baseUrl,
        SVC_DATA_DIR: dataDir, // the folder has the SSH CA key, which both replicas need
      },
    };
    replicas.push(await startTestApp(options), await startTestApp(options));
    balancer.replicas = replicas.map(({ config }) => `http://localhost:${config.http.listen.port}`);
  });
  afterAll(async () => {
    for (const replica of replicas) await replica.close();
    await Promise.all([corp.close(), balancer.close()]);
    await database.drop();
    await removeDirectory(dataDir);
  });

  const sessions = async () => {
    const [first] = replicas;
    return first ? count(first.dataSource, 'sessions') : Number.NaN;
  };
  const write = async (client: Client, id?: string) => {
    const asked = await beginSamlSignIn(client, 'corp');
    const samlResponse = encoded(
      corp.respond(asked, { email: MALLORY, ...(id === undefined ? {} : { assertion: { id } }) }),
    );
    return { samlResponse, relayState: asked.relayState };
  };

  it('signs a user in, whichever replica answers each request', async () => {
    for (let round = 0; round < 3; round += 1) {
      const client = new Client(balancer.baseUrl);
      expect(isIn(await comeBack(client, await write(client)))).toBe(true);
    }
    expect([...balancer.served.values()].every((served) => served > 3)).toBe(true);
  });

  it('signs in once when 20 copies arrive at both replicas at once', async () => {
    const client = new Client(balancer.baseUrl);
    const form = await write(client);
    const before = await sessions();
    const copies = Array.from({ length: 20 }, () => client.copy());
    const pages = await Promise.all(copies.map((copy) => comeBack(copy, form)));
    expect(pages.filter(isIn)).toHaveLength(1);
    expect((await sessions()) - before).toBe(1);
  });

  it('signs in once when 20 browsers answer 20 requests with one assertion ID', async () => {
    const before = await sessions();
    const browsers = Array.from({ length: 20 }, () => new Client(balancer.baseUrl));
    const forms = await Promise.all(browsers.map((browser) => write(browser, '_shared-by-20')));
    const pages = await Promise.all(
      browsers.map((browser, index) =>
        comeBack(browser, forms[index] ?? { samlResponse: '', relayState: '' }),
      ),
    );
    expect(pages.filter(isIn)).toHaveLength(1);
    expect((await sessions()) - before).toBe(1);
  });
});
