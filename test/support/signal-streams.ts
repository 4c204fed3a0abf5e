import { expect } from 'vitest';
import type { TestApp } from './app.js';
import type { Application } from './applications.js';
import { newAddress, type Answer, type Client } from './client.js';
import { postForm } from './oauth-flow.js';
import { rows } from './rows.js';
import { registerApplication } from './signed-in-application.js';

/**
 * Registers a web application without the grant type `client_credentials`. If it gets a token by
 * that grant, the token can only be for signals (security events).
 */
export function registerReceiver(owner: Client): Promise<Application> {
  return registerApplication(owner, { name: 'Hears' });
}

/** Sends a request to an application's settings for signals (security events), as an admin. */
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

/** Requests a token by the client credentials grant. Returns the whole response. */
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

/** Gets an access token for the API of signals (security events), as an application. */
export async function signalToken(
  app: TestApp,
  application: Application,
  scope = 'ssf.read ssf.manage',
): Promise<string> {
  const answer = await askToken(app, application, { scope });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return (answer.json as { access_token: string }).access_token;
}

/** An application with a token, by which it manages its stream of signals (security events). */
export interface StreamProgram {
  readonly application: Application;
  readonly token: string;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}

/**
 * Sends a request to the API of signals (SSF, the Shared Signals Framework), with or without a
 * token.
 */
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

/**
 * Registers an application, and allows signals for it as an admin. Returns the application with its
 * token.
 */
export async function newProgram(
  app: TestApp,
  admin: Client,
  allowed: Readonly<Record<string, unknown>> = {},
): Promise<StreamProgram> {
  const application = await registerReceiver(admin);
  expect((await signalsApi(admin, 'PUT', application, allowed)).status).toBe(200);
  return programOf(app, application);
}

/** Gets a token for the signals of an application for which an admin has allowed them. */
export async function programOf(app: TestApp, application: Application): Promise<StreamProgram> {
  const token = await signalToken(app, application);
  return {
    application,
    token,
    send: (method, path, body) => sendSsf(app, token, method, path, body),
  };
}

/**
 * Creates a stream, and returns its id. The service pushes events to `uri`. Without `uri`, the
 * receiver must poll.
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

/**
 * The body of the response to a poll (RFC 8936). `sets` has the security event tokens by their ids.
 */
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

/** A row of the queue of signals: an event that a receiver has not taken yet. */
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

/**
 * Returns the queued events of a stream, the oldest first. With `subjectId`, returns only those
 * about that subject.
 */
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
