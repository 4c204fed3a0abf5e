import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse as uuidBytes } from 'uuid';
import {
  assertionSignature,
  authenticatorData,
  clientDataJSON,
  FLAG,
} from '@svc/stand-ins/authenticator-messages';
import { envelope, type GetOptions } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { postForm } from '../support/oauth-flow.js';
import { auditOf, rows } from '../support/rows.js';

const TOUCHED = FLAG.userPresent | FLAG.userVerified;
/**
 * Flags of authenticator data (WebAuthn §6.1): backup eligible (BE), backed up (BS) without BE, and
 * a reserved bit.
 */
const FLAGS = [0x08, 0x10, 0x02];

describe('an enrolled key that starts to report that it can be backed up', () => {
  let app: TestApp;
  let client: Client;
  let email: string;
  let credential: Awaited<ReturnType<typeof takeOver>>;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    email = `${crypto.randomUUID()}@flags.example`;
    ({ client } = await app.enrolled(email));
    credential = await takeOver(email);
  });

  /**
   * Replaces the id and the public key of the enrolled credential, so that this test can sign with
   * any flags.
   */
  async function takeOver(owner: string) {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const id = randomBytes(32);
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    await app.dataSource.query(
      `UPDATE authenticators SET credential_id = $1, public_key = $2
       FROM users WHERE users.id = user_id AND email = $3`,
      [id, pem, owner],
    );
    const [user] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM users WHERE email = $1',
      [owner],
    );
    return { id, privateKey, userHandle: Buffer.from(uuidBytes(user?.id ?? '')) };
  }

  /** Returns an assertion for a challenge, signed with the given authenticator flags. */
  function assert(options: GetOptions, origin: string, flags: number) {
    const clientData = clientDataJSON('webauthn.get', options.challenge, origin);
    const data = authenticatorData(options.rpId, flags, 1000 + flags);
    return {
      ...envelope(credential.id),
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: assertionSignature(credential.privateKey, data, clientData).toString(
          'base64url',
        ),
        userHandle: credential.userHandle.toString('base64url'),
      },
    };
  }

  const WAYS = {
    login: async (flags: number) => logIn(app.client(), flags),
    'step-up': async (flags: number) => logIn(client, flags),
    'the FIDO2 grant': async (flags: number) => {
      const asked = await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
      const assertion = assert(asked.json.publicKey, 'svc-native:svc-cli', flags);
      const answer = await postForm(app, '/oauth/token', {
        grant_type: 'urn:svc:params:oauth:grant-type:fido2',
        client_id: 'svc-cli',
        state: asked.json.state as string,
        assertion: Buffer.from(JSON.stringify(assertion)).toString('base64url'),
      });
      return [answer.status, answer.json.error];
    },
  };
  async function logIn(browser: Client, flags: number) {
    const post = (path: string, body: object) =>
      browser.post(path, body, { address: newAddress() });
    const { state, publicKey } = (await post('/login/webauthn/start', {})).json;
    const signed = assert(publicKey, app.baseUrl, flags);
    const answer = await post('/login/webauthn/complete', { state, credential: signed });
    return [answer.status, answer.json.code];
  }

  it.each([
    ['login', 'assertion_rejected'],
    ['step-up', 'assertion_rejected'],
    ['the FIDO2 grant', 'invalid_grant'],
  ] as const)('10.9 is refused at %s, and audited', async (way, code) => {
    for (const flag of FLAGS) {
      expect(await WAYS[way](TOUCHED | flag)).toEqual([400, code]);
    }
    const events = await auditOf(app.dataSource, email);
    expect(events.filter(({ type }) => type === 'login_failed')).toHaveLength(FLAGS.length);
    expect(await WAYS[way](TOUCHED)).toEqual([200, undefined]); // the same key without the flags
  });
});
