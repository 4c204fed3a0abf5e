import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RoutePolicies, type CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { FailoverWorld } from '../support/failover-world.js';
import { asProgram, madeApiToken } from '../support/api-tokens.js';
import { addTenant, type ScimTenant } from '../support/scim.js';

describe('a PostgreSQL that is not confirmed', () => {
  let world: FailoverWorld;
  let app: TestApp;
  let user: EnrolledUser;
  let tenant: ScimTenant;
  let apiToken: string;

  beforeAll(async () => {
    world = await FailoverWorld.open();
    app = await world.start();
    user = await app.enrolled('ada@example.com');
    tenant = await addTenant(app);
    ({ token: apiToken } = await madeApiToken(user.client));
    await world.addSilentReplica();
    await world.promote();
  });
  afterAll(() => world.close());

  const routes = (...sessions: string[]) =>
    app.nest
      .get(RoutePolicies)
      .routes.filter(({ policy }) => sessions.includes(policy.auth.session));

  function send({ method, template, policy }: CompiledRoute): Promise<Answer> {
    const path = template.replaceAll(/:\w+/g, randomUUID());
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
    if (policy.auth.session === 'program') return asProgram(app, apiToken, method, path, body);
    if (policy.auth.session === 'provisioner') {
      return tenant.send(method, path.replace('/scim/v2', ''), body.body);
    }
    return user.client.send(method, path, { address: newAddress(), ...body });
  }

  const readiness = async () => (await app.client().get('/health/ready')).status;

  it('gives 503 with retry-after on every route that needs a credential', async () => {
    await expect.poll(readiness).toBe(503);
    // `GET /v1/credentials/aws/token` accepts no cookie, so that this client makes it look up
    // nothing.
    const needing = routes('any', 'verified', 'provisioner', 'program').filter(
      ({ method, template }) => `${method} ${template}` !== 'GET /v1/credentials/aws/token',
    );
    expect(needing.length).toBeGreaterThan(60);
    const wrong: unknown[] = [];
    for (const route of needing) {
      const { status, headers } = await send(route);
      const seen = [status, headers.get('retry-after')];
      if (seen.join() !== '503,1') wrong.push([route.method, route.template, ...seen]);
    }
    expect(wrong).toEqual([]);
  });

  it('is alive and not ready', async () => {
    await expect.poll(readiness).toBe(503);
    const [live, ready] = [
      await app.client().get('/health'),
      await app.client().get('/health/ready'),
    ];
    expect([live.status, ready.status]).toEqual([200, 503]);
    expect(ready.json).toEqual({ status: 'not_ready', reason: 'database' });
  });
});
