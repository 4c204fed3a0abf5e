import { expect } from 'vitest';
import type { TestApp } from './app.js';
import type { Application } from './applications.js';
import { newAddress, type Answer, type Client } from './client.js';
import { postForm } from './oauth-flow.js';
import { rows } from './rows.js';
import { registerApplication } from './signed-in-application.js';

/**
 * Registers a web application. It has no grant type for client credentials, so that a token of
 * client credentials can only be for signals (security events).
 */
export function registerReceiver(owner: Client): Promise<Application> {
  return registerApplication(owner, { name: 'Hears' });
}

/** Sends a request of an admin about the signals (security events) of an application. */
export function signalsApi(
  admin: Client,
  method: string,
  { clientId }: Application,
  body?: unknown,
  path = '',
): Promise<Answer> {
  return admin.send(method, `/api/v1/applications/${clientId}/signals${path}`, {
    address: newAddress(),
    ...(body === undefined ? {} : { body }),
  });
}

/** Requests a token of client credentials. */
export function askToken(
  app: TestApp,
  { clientId, clientSecret }: Application,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  return postForm(app, '/oauth/token', {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...fields,
  });
}

/** Gets a token for the signals (security events) of an application. */
export async function signalToken(
  app: TestApp,
  application: Application,
  scope = 'ssf.read ssf.manage',
): Promise<string> {
  const answer = await askToken(app, application, { scope });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return (answer.json as { access_token: string }).access_token;
}

/** The program of an application that manages its stream of signals (security events). */
export interface StreamProgram {
  readonly application: Application;
  readonly token: string;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}

/** Sends a request with a token to an endpoint of signals (SSF). */
export function sendSsf(
  app: TestApp,
  token: string | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return app.client().send(method, path, {
    address: newAddress(),
    ...(body === undefined ? {} : { body }),
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), origin: '' },
  });
}

/** Registers an application, lets an admin allow signals for it, and gets a token for them. */
export async function newProgram(
  app: TestApp,
  admin: Client,
  allowed: Readonly<Record<string, unknown>> = {},
): Promise<StreamProgram> {
  const application = await registerReceiver(admin);
  expect((await signalsApi(admin, 'PUT', application, allowed)).status).toBe(200);
  return programOf(app, application);
}

/** Gets a token for the signals of an application that an admin has allowed. */
export async function programOf(app: TestApp, application: Application): Promise<StreamProgram> {
  const token = await signalToken(app, application);
  return {
    application,
    token,
    send: (method, path, body) => sendSsf(app, token, method, path, body),
  };
}

/**
 * Creates a stream, and returns its id. If an address is given, the service pushes events to it;
 * otherwise the receiver polls for them.
 */
export async function createStream(
  program: StreamProgram,
  uri?: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const delivery =
    uri === undefined
      ? { method: 'urn:ietf:rfc:8936' }
      : { method: 'urn:ietf:rfc:8935', endpoint_url: uri };
  const answer = await program.send('POST', '/ssf/stream', { delivery, ...more });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return (answer.json as { stream_id: string }).stream_id;
}

/** The JSON of the answer to a poll for events (RFC 8936): `sets` has the tokens by their ids. */
export interface PolledJson {
  readonly sets: Readonly<Record<string, string>>;
  readonly moreAvailable?: boolean;
}

/**
 * Polls a stream for its events (RFC 8936). The service answers at once, even if there are none.
 */
export async function poll(
  program: StreamProgram,
  streamId: string,
  body: Readonly<Record<string, unknown>> = {},
): Promise<PolledJson> {
  const answer = await program.send('POST', `/ssf/poll/${streamId}`, {
    returnImmediately: true,
    ...body,
  });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json as PolledJson;
}

/** An event in the queue of signals. */
export interface SignalRow {
  readonly id: string;
  readonly stream_id: string;
  readonly type: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly jti: string;
  readonly tries: number;
  readonly dead: boolean;
  readonly last_result: string | null;
}

/** Lists the events in the queue for a stream, all or those about one subject, the oldest first. */
export function signalsOf(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  streamId: string,
  subjectId: string | null = null,
): Promise<SignalRow[]> {
  return rows<SignalRow>(
    dataSource,
    `SELECT id, stream_id, type, body, jti, tries, dead_at IS NOT NULL AS dead, last_result FROM signal_events
     WHERE stream_id = $1 AND ($2::uuid IS NULL OR subject_id = $2) ORDER BY id`,
    [streamId, subjectId],
  );
}
