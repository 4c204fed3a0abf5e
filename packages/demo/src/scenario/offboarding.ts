import { z } from 'zod';
import { systemClock } from '@svc/stand-ins/clock';
import { DemoApplication } from '../application/application.js';
import { enrollKey, logInWithKey } from './ceremonies.js';
import { HttpClient, read, unexpected } from './http-client.js';
import { prepareSshd, type LocalSshd } from './ssh/local-sshd.js';
import { newPublicKeyLine } from './ssh-steps.js';
import type { Colleague, ScenarioContext, SshCredential, StepResult } from './step.js';

const SCIM_TOKEN = z.object({ id: z.string(), token: z.string() });
const USER = z.object({ id: z.string(), userName: z.string() });
const CERTIFICATE = z.object({
  serial: z.string(),
  certificate: z.string(),
  ca_public_key: z.string(),
});
const REVOCATION = z.object({ revoked: z.boolean() });
const APPLICATION = z.object({ client_id: z.string(), client_secret: z.string() });
const APPLICATION_STATE = z.object({ state: z.string(), ended_at: z.number().nullable() });

/**
 * The milliseconds between two requests that ask the application if its session has ended, and the
 * longest wait until it has.
 */
const TELLING = { interval: 5, longest: 10_000 };

/**
 * Creates a SCIM token, and with it a user. The user enrolls a key, gets a certificate, and signs
 * in to an application.
 */
export async function provisionColleague(context: ScenarioContext): Promise<StepResult> {
  const { client } = context;
  const email = context.email.replace(/^[^@]+/, 'grace.hopper');
  const description = 'The demo’s identity provider';
  const token = await client.postFor('/api/v1/org/scim-tokens', { description }, SCIM_TOKEN);
  const body = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName: email };
  const provisioner = new HttpClient(client.baseUrl, '192.0.2.9');
  const created = await provisioner.sendWithToken(token.token, 'POST', '/scim/v2/Users', body);
  const { id } = read(created, USER);

  const colleagueClient = await enrolledClient(context, email);
  const sshd = await prepareSshd();
  const public_key = sshd?.publicKeyLine ?? newPublicKeyLine(email);
  const ssh = await colleagueClient.postFor('/v1/credentials/ssh', { public_key }, CERTIFICATE);
  const { serial } = ssh;
  if (sshd) await startSshd(client, { sshd, email, ssh });
  const application = await signedInApplication(client, colleagueClient);
  context.colleague = {
    id,
    email,
    client: colleagueClient,
    serial,
    sshd,
    application,
    scimToken: token.token,
  };
  return {
    line: `${email} was provisioned, enrolled a key and has the certificate ${serial}${sshd ? ', which sshd accepts' : ''}; an application keeps a session`,
    result: { scim_token_id: token.id, user_id: id, email, serial, sshd: sshd !== undefined },
  };
}

/**
 * Deletes the user by SCIM. When the response arrives, the session has ended and the certificate is
 * revoked. Right after that the application gets a logout token, and ends its own session.
 */
export async function deleteColleague(context: ScenarioContext): Promise<StepResult> {
  const { client, colleague } = context;
  if (!colleague) throw new Error('there is no colleague to delete');
  try {
    const seconds = await measureDeletion(client, colleague);
    const { id, email, serial } = colleague;
    const atSshd =
      seconds.refused_by_sshd === null
        ? 'no sshd here to ask'
        : `refused by sshd after ${seconds.refused_by_sshd} s`;
    return {
      line: `${email} is gone: session refused after ${seconds.session_refused} s, certificate ${serial} revoked after ${seconds.certificate_revoked} s, session of the application ended by back-channel logout after ${seconds.application_ended} s, ${atSshd}`,
      result: { user_id: id, seconds, serial },
    };
  } finally {
    await colleague.sshd?.stop();
    await colleague.application.close();
  }
}

/**
 * Starts an application, which the admin registers, and signs the colleague in to it. From then on
 * the application keeps a session of its own.
 */
async function signedInApplication(
  admin: HttpClient,
  colleague: HttpClient,
): Promise<DemoApplication> {
  const application = await DemoApplication.start(0);
  try {
    const { registration, url } = application;
    const made = await admin.postFor('/api/v1/applications', registration, APPLICATION);
    const { client_id: clientId, client_secret: clientSecret } = made;
    await application.connect({ issuer: admin.baseUrl, clientId, clientSecret });
    const page = await colleague.get(`${url}/sign-in`);
    if (page.status !== 200 || page.url.origin !== url) throw unexpected(page);
    return application;
  } catch (error) {
    await application.close();
    throw error;
  }
}

/**
 * Signs the colleague in with an HTTP client of their own, and enrolls the same software key for
 * the new account.
 */
async function enrolledClient(context: ScenarioContext, email: string): Promise<HttpClient> {
  const { client, key, provider = '' } = context;
  const colleague = new HttpClient(client.baseUrl, '192.0.2.7');
  const query = new URLSearchParams({ provider, login_hint: email });
  await colleague.get(`/login?${query.toString()}`);
  const name = 'The same key, another account';
  await enrollKey(colleague, { key, name, response: z.object({}) });
  await logInWithKey(colleague, key);
  return colleague;
}

/** Starts sshd, and checks that a login with the certificate of the colleague succeeds. */
async function startSshd(
  client: HttpClient,
  { sshd, email, ssh }: { sshd: LocalSshd; email: string; ssh: SshCredential },
): Promise<void> {
  try {
    const revoked = await client.download('/v1/credentials/ssh/krl');
    const { certificate, ca_public_key: authority } = ssh;
    await sshd.start({ authority, principal: email, certificate, revoked });
    if (!(await sshd.acceptsLogin())) throw new Error('sshd does not accept the certificate');
  } catch (error) {
    await sshd.stop();
    throw error;
  }
}

/** Deletes the colleague, and measures the seconds until each kind of access is refused. */
async function measureDeletion(client: HttpClient, colleague: Colleague) {
  const { id, email, serial, scimToken, sshd, application } = colleague;
  if ((await colleague.client.get('/v1/keys')).status !== 200) {
    throw new Error('the colleague had no session to begin with');
  }
  const start = systemClock.milliseconds();
  const seconds = (at = systemClock.milliseconds()) => Number(((at - start) / 1000).toFixed(3));
  const deleted = await client.sendWithToken(scimToken, 'DELETE', `/scim/v2/Users/${id}`);
  if (deleted.status !== 204) throw unexpected(deleted);
  const answered = seconds();
  const refused = await colleague.client.get('/v1/keys');
  if (refused.status !== 401) throw new Error(`the session of ${email} goes on`);
  const session_refused = seconds();
  const listed = read(await client.get(`/v1/credentials/ssh/krl/${serial}`), REVOCATION);
  if (!listed.revoked) throw new Error(`the certificate ${serial} is not revoked`);
  const certificate_revoked = seconds();
  const application_ended = seconds(await endAtApplication(colleague.client, application));
  let refused_by_sshd: number | null = null;
  if (sshd) {
    await sshd.refresh(await client.download('/v1/credentials/ssh/krl'));
    if (await sshd.acceptsLogin()) throw new Error('sshd still accepts the certificate');
    refused_by_sshd = seconds();
  }
  return { answered, session_refused, certificate_revoked, application_ended, refused_by_sshd };
}

/**
 * Waits until the application has ended its own session, and returns that time in milliseconds
 * since 1970.
 * @throws Error if the session has not ended after ten seconds
 */
async function endAtApplication(client: HttpClient, { url }: DemoApplication): Promise<number> {
  const until = systemClock.monotonic() + TELLING.longest;
  while (systemClock.monotonic() < until) {
    const { ended_at } = read(await client.get(`${url}/state`), APPLICATION_STATE);
    if (ended_at !== null) return ended_at;
    await systemClock.sleep(TELLING.interval);
  }
  throw new Error('the application still has its session');
}
