import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { RequestMethod } from '@nestjs/common';
import { MetadataScanner, ModulesContainer, Reflector } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Access } from '../../src/platform/http/access/access.js';
import { FALLBACK_TEMPLATE } from '../../src/platform/http/routing/allowed-methods.js';
import { bodyLimitOf } from '../../src/platform/http/body/body-limits.js';
import { cacheClassOf, corsClassOf } from '../../src/platform/http/contract/route-classes.js';
import { TIERS, tierOf } from '../../src/platform/rate-limit/buckets/tiers.js';
import { startTestApp, type TestApp } from '../support/app.js';

const KIB = 1024;

/**
 * Every route there is: its rate tier, the KiB its body may have, who may read it from another origin, what caches may
 * do, the session it asks for, the scope that an access token needs to open it, and the seconds that the last touch of the key
 * may lie back.
 */
const EXPECTED = `
GET    /                          unlimited       256  ui    ui   optional
GET    /login                     general         256  ui    ui   optional
GET    /enroll                    general         256  ui    ui   optional
GET    /keys                      general         256  ui    ui   optional
GET    /sessions                  general         256  ui    ui   optional
POST   /logout                    general         256  ui    ui   optional
GET    /static/:name              unlimited       256  ui    ui   none
GET    /oauth/callback            unlimited       256  api   api  optional
POST   /enroll/webauthn/start     authentication   32  ui    ui   any
POST   /enroll/webauthn/failed    authentication   32  ui    ui   any
POST   /enroll/webauthn/complete  authentication   32  ui    ui   optional
POST   /login/webauthn/start      authentication   32  ui    ui   optional
POST   /login/webauthn/complete   authentication   32  ui    ui   optional
GET    /v1/keys                   general         256  api   api  verified svc:credentials
PATCH  /v1/keys/:id               general         256  api   api  verified svc:credentials
GET    /v1/sessions               general         256  api   api  verified svc:credentials
DELETE /v1/sessions/:id           general         256  api   api  verified svc:credentials
POST   /v1/credentials/ssh        issuance          8  api   api  verified svc:credentials
GET    /v1/credentials/ssh/ca     general           8  api   api  none
GET    /v1/credentials/ssh/krl    general           8  api   api  none
GET    /v1/credentials/ssh/krl/:serial general      8  api   api  none
GET    /health                    unlimited       256  api   api  none
GET    /health/ready              unlimited       256  api   api  none
GET    /metrics                   unlimited       256  api   api  none
POST   /certification/complete-login general       256  api   api  none
POST   /certification/deny-login  general         256  api   api  none

GET    /.well-known/openid-configuration       unlimited  256 api api none
GET    /.well-known/oauth-authorization-server unlimited  256 api api none
GET    /.well-known/oauth-protected-resource   unlimited  256 api api none
GET    /oauth/jwks                unlimited       256  api   api  none
GET    /oauth/authorize           general          64  none  api  none
POST   /oauth/authorize           general          64  none  api  none
GET    /oauth/authorize/:uid      general         256  none  api  none
GET    /interaction/:uid          general         256  ui    ui   none
POST   /interaction/:uid/consent  general         256  ui    ui   none
POST   /interaction/:uid/deny     general         256  ui    ui   none
POST   /oauth/par                 authentication  256  api   api  none
POST   /oauth/token               authentication  256  api   api  none
POST   /oauth/fido2/challenge     authentication  256  api   api  none
POST   /oauth/device              authentication  256  api   api  none
GET    /device                    general         256  ui    ui   optional
POST   /device                    authentication  256  ui    ui   optional
POST   /device/approve            general         256  ui    ui   none
POST   /device/deny               general         256  ui    ui   none
POST   /oauth/introspect          general         256  api   api  none
POST   /oauth/revoke              general         256  api   api  none
GET    /oauth/userinfo            unlimited       256  api   api  none
POST   /oauth/userinfo            unlimited       256  api   api  none
POST   /oauth/register            authentication  256  api   api  none
GET    /oauth/register/:clientId  authentication  256  api   api  none
PUT    /oauth/register/:clientId  authentication  256  api   api  none
DELETE /oauth/register/:clientId  authentication  256  api   api  none
GET    /oauth/logout              general         256  none  api  none
POST   /oauth/logout              general         256  none  api  none
POST   /oauth/logout/confirm      general         256  none  api  none
GET    /oauth/logout/success      general         256  none  api  none
POST   /api/v1/applications       general         256  api   api  verified svc:applications
GET    /api/v1/applications       general         256  api   api  verified svc:applications
GET    /api/v1/applications/:id   general         256  api   api  verified svc:applications
PATCH  /api/v1/applications/:id   general         256  api   api  verified svc:applications
DELETE /api/v1/applications/:id   general         256  api   api  verified svc:applications
GET    /api/v1/applications/:id/secrets general   256  api   api  verified svc:applications
POST   /api/v1/applications/:id/secrets general   256  api   api  verified svc:applications touch:300
DELETE /api/v1/applications/:id/secrets/:secretId general 256 api api verified svc:applications touch:300
POST   /api/v1/applications/:id/revoke-tokens general 256 api api verified svc:applications
GET    /api/v1/org                general        256  api   api  verified svc:admin
PATCH  /api/v1/org                general        256  api   api  verified svc:admin touch:300
GET    /api/v1/org/audit-events general        256  api   api  verified svc:admin
GET    /api/v1/org/members     general        256  api   api  verified svc:admin
POST   /api/v1/org/members/:id/promote general 256 api api verified svc:admin touch:300
POST   /api/v1/org/members/:id/demote general 256 api api verified svc:admin touch:300
POST   /api/v1/org/members/:id/deactivate general 256 api api verified svc:admin touch:300
POST   /api/v1/org/members/:id/activate general 256 api api verified svc:admin touch:300
POST   /api/v1/org/members/:id/revoke-credentials general 256 api api verified svc:admin touch:300
POST   /api/v1/org/members/:id/remove general 256 api api verified svc:admin touch:300
POST   /api/v1/org/scim-tokens     general        256  api   api  verified svc:admin touch:300
GET    /api/v1/org/scim-tokens     general        256  api   api  verified svc:admin
DELETE /api/v1/org/scim-tokens/:id general        256  api   api  verified svc:admin

GET    /scim/v2/ServiceProviderConfig  general 64 api api provisioner
GET    /scim/v2/Schemas                general 64 api api provisioner
GET    /scim/v2/Schemas/:id            general 64 api api provisioner
GET    /scim/v2/ResourceTypes          general 64 api api provisioner
GET    /scim/v2/ResourceTypes/:id      general 64 api api provisioner
GET    /scim/v2                        general 64 api api provisioner
POST   /scim/v2/.search                general 64 api api provisioner
GET    /scim/v2/Me                     general 64 api api provisioner
POST   /scim/v2/Bulk                   general 64 api api provisioner
POST   /scim/v2/Users                  general 64 api api provisioner
GET    /scim/v2/Users                  general 64 api api provisioner
POST   /scim/v2/Users/.search          general 64 api api provisioner
GET    /scim/v2/Users/:id              general 64 api api provisioner
PUT    /scim/v2/Users/:id              general 64 api api provisioner
PATCH  /scim/v2/Users/:id              general 64 api api provisioner
DELETE /scim/v2/Users/:id              general 64 api api provisioner
POST   /scim/v2/Groups                 general 64 api api provisioner
GET    /scim/v2/Groups                 general 64 api api provisioner
POST   /scim/v2/Groups/.search         general 64 api api provisioner
GET    /scim/v2/Groups/:id             general 64 api api provisioner
PUT    /scim/v2/Groups/:id             general 64 api api provisioner
PATCH  /scim/v2/Groups/:id             general 64 api api provisioner
DELETE /scim/v2/Groups/:id             general 64 api api provisioner
`
  .trim()
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.split(/\s+/).join(' '))
  .toSorted();

describe('every route', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_METRICS_BEARER_TOKEN: 'the token of a scraper in a test',
        SVC_CERTIFICATION_TEST_TOKEN: 'the token of a certification suite in a test',
      },
    });
  });
  afterAll(() => app.close());

  it('has an entry in each table: tier, body limit, CORS class, cache class, session, touch', () => {
    const found = routesOf(app).map(({ method, template, session, scope, touch }) =>
      [
        method,
        template,
        tierOf(method, template) ?? 'in no tier',
        bodyLimitOf(template) / KIB,
        corsClassOf(template),
        cacheClassOf(template),
        session,
        ...(scope === undefined ? [] : [scope]),
        ...(touch === undefined ? [] : [`touch:${touch}`]),
      ].join(' '),
    );
    expect(found.toSorted()).toEqual(EXPECTED);
  });

  it('is known to Express, and Express knows no other', () => {
    const layers = app.nest.getHttpAdapter().getInstance().router.stack as unknown as readonly {
      readonly route?: { readonly path: string; readonly methods: Record<string, boolean> };
    }[];
    const registered = layers.flatMap(({ route }) =>
      route === undefined || route.path === FALLBACK_TEMPLATE
        ? []
        : Object.keys(route.methods).map((method) => `${method.toUpperCase()} ${route.path}`),
    );
    const known = routesOf(app).map(({ method, template }) => `${method} ${template}`);
    expect(registered.toSorted()).toEqual(known.toSorted());
  });
});

describe('every route without a session', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('answers as its row states', async () => {
    for (const { method, template, session } of routesOf(app)) {
      const answer = await app.client().send(method, template.replaceAll(/:\w+/g, 'x'));
      const of = `${method} ${template}`;
      const tier = tierOf(method, template);
      const limit = answer.headers.get('x-ratelimit-limit');
      const { burst } = TIERS[tier === undefined || tier === 'unlimited' ? 'general' : tier];
      expect([of, limit]).toEqual([of, String(burst)]);
      const cache = answer.headers.get('cache-control');
      expect([of, cache?.includes('no-store')]).toEqual([of, cacheClassOf(template) === 'api']);
      const cors = answer.headers.get('access-control-allow-origin');
      expect([of, cors]).toEqual([of, corsClassOf(template) === 'api' ? '*' : null]);
      if (template.startsWith('/oauth/')) continue; // they judge tokens of their own
      const refused = ['any', 'verified', 'provisioner'].includes(session);
      expect([of, answer.status === 401]).toEqual([of, refused]);
    }
  });
});

interface Route {
  readonly method: string;
  readonly template: string;
  readonly session: string;
  readonly scope: string | undefined;
  readonly touch: number | undefined;
}

/** Every route of every controller but the fallback, from the metadata that Nest mounts it by. */
function routesOf(app: TestApp): Route[] {
  const reflector = new Reflector();
  const scanner = new MetadataScanner();
  const controllers = [...app.nest.get(ModulesContainer).values()].flatMap((module) => [
    ...module.controllers.values(),
  ]);
  return controllers.flatMap(({ metatype }) => {
    if (typeof metatype !== 'function') return [];
    const prototype = metatype.prototype as Record<string, () => void>;
    return scanner.getAllMethodNames(prototype).flatMap((name) => {
      const handler = prototype[name] ?? (() => undefined);
      const path = Reflect.getMetadata(PATH_METADATA, handler) as string | undefined;
      if (path === undefined || path === FALLBACK_TEMPLATE) return [];
      const base = Reflect.getMetadata(PATH_METADATA, metatype) as string;
      const template = `/${base}/${path}`.replaceAll(/\/+/g, '/').replace(/(?<=.)\/$/, '');
      const method = RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as number] ?? '';
      const access = reflector.getAllAndOverride(Access, [handler, metatype]);
      const session = access?.session ?? 'no rule';
      const touch = access?.touchedWithinSeconds;
      return [{ method, template, session, scope: access?.scope, touch }];
    });
  });
}
