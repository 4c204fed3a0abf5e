import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  FALLBACK_TEMPLATE,
  RoutePolicies,
  type CompiledRoute,
} from '../../src/platform/http/routing/route-policies.js';
import { TIERS } from '../../src/platform/rate-limit/buckets/tiers.js';
import { startTestApp, type TestApp } from '../support/app.js';

const KIB = 1024;

/**
 * Every route as its `@Route` states it. The columns are method, path, rate tier, kind and KiB of
 * the body, audience, format of errors and session. Then follow, if there are any: the scope that
 * an access token needs, the greatest age of the last touch in seconds, and rarer rules.
 */
const EXPECTED = `
GET    /                                          unlimited      none   256 ui         html       optional
GET    /login                                     general        none   256 ui         html       optional        anonymous-rows
GET    /enroll                                    general        none   256 ui         html       optional
GET    /keys                                      general        none   256 ui         html       none
GET    /sessions                                  general        none   256 ui         html       none
GET    /account                                   general        none   256 ui         html       optional
GET    /admin/access                              general        none   256 ui         html       optional
GET    /admin/access/:kind/:id                    general        none   256 ui         html       optional
GET    /admin/access/:kind/:id/change             general        none   256 ui         html       optional
GET    /admin/access/:kind/:id/delete             general        none   256 ui         html       optional
GET    /account/reach                             general        none   256 ui         html       optional
GET    /account/keys                              general        none   256 ui         html       optional
GET    /account/sessions                          general        none   256 ui         html       optional
GET    /account/credentials                       general        none   256 ui         html       optional
GET    /account/applications                      general        none   256 ui         html       optional
GET    /account/activity                          general        none   256 ui         html       optional
GET    /enroll/done                               general        none   256 ui         html       optional
GET    /admin                                     general        none   256 ui         html       optional
GET    /admin/members                             general        none   256 ui         html       optional
GET    /admin/members/:id/reach                   general        none   256 ui         html       optional
GET    /admin/members/:id                         general        none   256 ui         html       optional
GET    /admin/applications                        general        none   256 ui         html       optional
GET    /admin/applications/new                    general        none   256 ui         html       optional
GET    /admin/applications/:id                    general        none   256 ui         html       optional
GET    /admin/domains                             general        none   256 ui         html       optional
GET    /admin/domains/:domain                     general        none   256 ui         html       optional
GET    /admin/github                              general        none   256 ui         html       optional
GET    /admin/providers                           general        none   256 ui         html       optional
GET    /admin/providers/:id                       general        none   256 ui         html       optional
GET    /admin/settings                            general        none   256 ui         html       optional
GET    /admin/api-tokens                          general        none   256 ui         html       optional
GET    /admin/api-tokens/:id/rotate               general        none   256 ui         html       optional
GET    /admin/scim-tokens                         general        none   256 ui         html       optional
GET    /admin/scim-tokens/:id/rotate              general        none   256 ui         html       optional
GET    /docs/api                                  general        none   256 ui         html       optional
GET    /docs/api/:group                           general        none   256 ui         html       optional
GET    /docs/search                               general        none   256 ui         html       optional
GET    /docs/files/:name                          unlimited      none   256 ui         negotiated none
GET    /docs                                      general        none   256 ui         html       optional
GET    /docs/:page                                general        none   256 ui         html       optional
GET    /docs/:folder/:page                        general        none   256 ui         html       optional
GET    /docs/:folder/:subfolder/:page             general        none   256 ui         html       optional
GET    /errors                                    general        none   256 ui         html       optional
GET    /errors/:code                              general        none   256 ui         html       optional
POST   /logout                                    general        none   256 ui         html       optional
GET    /install                                   general        none   256 ui         html       none
GET    /install.sh                                general        none   256 ui         negotiated none
GET    /install.ps1                               general        none   256 ui         negotiated none
GET    /install/files/:name                       general        none   256 ui         negotiated none
GET    /static/svc.mjs                            unlimited      none   256 ui         negotiated none
GET    /static/:name                              unlimited      none   256 ui         negotiated none
GET    /oauth/callback                            unlimited      none   256 api        html       optional    from:any no-head
GET    /saml/metadata                             unlimited      none   256 api        negotiated none
POST   /saml/acs                                  unlimited      form   64  api        html       none
GET    /saml/complete                             general        none   256 api        html       optional    from:any no-head
POST   /enroll/webauthn/start                     authentication json   32  ui         problem    any
POST   /enroll/webauthn/failed                    authentication json   32  ui         problem    any
POST   /enroll/webauthn/complete                  authentication json   32  ui         problem    optional    fails:400
POST   /login/webauthn/start                      authentication json   32  ui         problem    optional
POST   /login/webauthn/complete                   authentication json   32  ui         problem    optional    fails:400
GET    /install-host.sh                            general        none   256 api        problem    none
GET    /v1/keys                                   general        none   256 api        problem    verified    svc:credentials
PATCH  /v1/keys/:id                               general        json   256 api        problem    verified    svc:credentials
DELETE /v1/keys/:id                               general        none   256 api        problem    verified    svc:credentials touch:60
POST   /v1/keys/register/start                    authentication json   32  api        problem    verified    svc:credentials touch:60
POST   /v1/keys/register/complete                 authentication json   32  api        problem    verified    svc:credentials touch:60
GET    /v1/sessions                               general        none   256 api        problem    verified    svc:credentials
POST   /v1/sessions/end-others                    general        json   256 api        problem    verified    svc:credentials
DELETE /v1/sessions/:id                           general        none   256 api        problem    verified    svc:credentials
GET    /v1/account/credentials                    general        none   256 api        problem    verified    svc:credentials
POST   /v1/account/certificates/:serial/revoke    general        json   256 api        problem    verified    svc:credentials
GET    /v1/account/applications                   general        none   256 api        problem    verified    svc:credentials
DELETE /v1/account/applications/:client_id        general        none   256 api        problem    verified    svc:credentials
GET    /v1/account/activity                       general        none   256 api        problem    verified    svc:credentials
GET    /v1/account/export                         general        none   256 api        problem    verified    svc:credentials
POST   /account/notices/dismiss                   general        form   256 ui         html       verified    from:strict
POST   /account/notices/one-key                   general        form   256 ui         html       verified    from:strict
GET    /admin/event-receivers                     general        none   256 ui         html       optional
GET    /admin/event-receivers/:id                 general        none   256 ui         html       optional
GET    /api/v1/org/event-receivers                general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/event-receivers                general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/event-receivers/:id            general        none   256 api        problem    verified    svc:admin
PATCH  /api/v1/org/event-receivers/:id            general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/event-receivers/:id            general        none   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/event-receivers/:id/rotate-secret general     json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/event-receivers/:id/test       general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/event-receivers/:id/dead-letters/:letter_id/repeat general json 256 api problem verified svc:admin touch:300
DELETE /api/v1/org/event-receivers/:id/dead-letters/:letter_id general none 256 api    problem    verified    svc:admin touch:300
GET    /v1/setup                                  general        none   256 api        problem    verified    svc:credentials
POST   /v1/credentials/ssh                        issuance       json   8   api        problem    verified    svc:credentials
POST   /v1/credentials/ssh/challenge              issuance       json   8   api        problem    verified    svc:credentials
POST   /v1/credentials/aws/token                  issuance       json   8   api        problem    verified    svc:credentials
GET    /v1/credentials/aws/token                  issuance       none   8   api        problem    verified    svc:credentials header-only no-head
POST   /v1/credentials/github/token               issuance       json   8   api        problem    verified    svc:credentials
GET    /v1/credentials/github/status              general        none   8   api        problem    verified    svc:credentials
POST   /v1/credentials/github/link                general        json   8   api        problem    verified    svc:admin touch:300
GET    /v1/credentials/github/callback            general        none   8   ui         html       verified    from:any svc:admin no-head
PATCH  /v1/credentials/github/settings            general        json   8   api        problem    verified    svc:admin touch:300
DELETE /v1/credentials/github/installations/:id   general        none   8   api        problem    verified    svc:admin touch:300
POST   /api/webhooks/github                       general        raw    1024 api        problem    none
GET    /v1/credentials/ssh/ca                     general        none   8   api        problem    none
GET    /v1/credentials/ssh/allowed_signers/:organization general        none   8   api        problem    none
GET    /v1/credentials/ssh/krl                    general        none   8   api        problem    none
GET    /v1/credentials/ssh/krl/signatures         general        none   8   api        problem    none
GET    /v1/credentials/ssh/krl/:serial            general        none   8   api        problem    none
GET    /health                                    unlimited      none   256 api        negotiated none        any-host tenant-hosts plain-http
GET    /health/ready                              unlimited      none   256 api        negotiated none        any-host tenant-hosts plain-http
GET    /openapi.json                              unlimited      none   256 api        problem    none
GET    /metrics                                   unlimited      none   256 api        negotiated none        any-host
POST   /certification/complete-login              general        form   256 api        problem    none
POST   /certification/deny-login                  general        form   256 api        problem    none

GET    /.well-known/openid-configuration          unlimited      none   256 api        negotiated none        tenant-hosts
GET    /.well-known/oauth-authorization-server    unlimited      none   256 api        negotiated none
GET    /.well-known/oauth-protected-resource      unlimited      none   256 api        negotiated none
GET    /.well-known/security.txt                  unlimited      none   256 api        negotiated none
GET    /oauth/jwks                                unlimited      none   256 api        oauth      none        tenant-hosts
GET    /oauth/authorize                           general        none   64  navigation html       none        anonymous-rows
POST   /oauth/authorize                           general        fields 64  navigation html       none        anonymous-rows
GET    /oauth/authorize/:uid                      general        none   256 navigation html       none
GET    /interaction/:uid                          general        none   256 ui         negotiated none        from:strict
POST   /interaction/:uid/consent                  general        json   256 ui         negotiated none        from:strict
POST   /interaction/:uid/deny                     general        json   256 ui         negotiated none        from:strict
POST   /oauth/par                                 authentication fields 256 api        oauth      none        anonymous-rows
POST   /oauth/token                               authentication fields 256 api        oauth      none
POST   /oauth/fido2/challenge                     authentication form   256 api        oauth      none
POST   /oauth/device                              authentication fields 256 api        oauth      none        anonymous-rows
GET    /device                                    general        none   256 ui         html       optional    from:strict
POST   /device                                    authentication form   256 ui         html       optional    from:strict  anonymous-rows
POST   /device/approve                            general        json   256 ui         problem    optional    from:strict
POST   /device/deny                               general        json   256 ui         problem    optional    from:strict
POST   /oauth/introspect                          general        fields 256 api        oauth      none
POST   /oauth/revoke                              general        fields 256 api        oauth      none
GET    /oauth/userinfo                            unlimited      none   256 api        oauth      none
POST   /oauth/userinfo                            unlimited      fields 256 api        oauth      none
POST   /oauth/register                            authentication json   256 api        oauth      none        anonymous-rows
GET    /oauth/register/:clientId                  authentication none   256 api        oauth      none
PUT    /oauth/register/:clientId                  authentication json   256 api        oauth      none
DELETE /oauth/register/:clientId                  authentication none   256 api        oauth      none
GET    /oauth/logout                              general        none   256 navigation html       none        anonymous-rows
POST   /oauth/logout                              general        fields 256 navigation html       none
POST   /oauth/logout/confirm                      general        fields 256 navigation html       none
GET    /oauth/logout/success                      general        none   256 navigation html       none
POST   /api/v1/applications                       general        json   256 api        problem    verified    svc:applications touch:300
GET    /api/v1/applications                       general        none   256 api        problem    verified    svc:applications
GET    /api/v1/applications/:id                   general        none   256 api        problem    verified    svc:applications
PATCH  /api/v1/applications/:id                   general        json   256 api        problem    verified    svc:applications touch:300
DELETE /api/v1/applications/:id                   general        none   256 api        problem    verified    svc:applications touch:300
GET    /api/v1/applications/:id/secrets           general        none   256 api        problem    verified    svc:applications
POST   /api/v1/applications/:id/secrets           general        json   256 api        problem    verified    svc:applications touch:300
DELETE /api/v1/applications/:id/secrets/:secretId general        none   256 api        problem    verified    svc:applications touch:300
GET    /api/v1/applications/:id/logout-notices    general        none   256 api        problem    verified    svc:applications
POST   /api/v1/applications/:id/logout-notices/:noticeId/repeat general        json   256 api        problem    verified    svc:applications touch:300
DELETE /api/v1/applications/:id/logout-notices/:noticeId general        none   256 api        problem    verified    svc:applications touch:300
GET    /api/v1/applications/:id/signals           general        none   256 api        problem    verified    svc:applications
PUT    /api/v1/applications/:id/signals           general        json   256 api        problem    verified    svc:applications touch:300
DELETE /api/v1/applications/:id/signals           general        none   256 api        problem    verified    svc:applications touch:300
POST   /api/v1/applications/:id/signals/:signalId/repeat general        json   256 api        problem    verified    svc:applications touch:300
DELETE /api/v1/applications/:id/signals/:signalId general        none   256 api        problem    verified    svc:applications touch:300
POST   /api/v1/applications/:id/approve           general        json   256 api        problem    verified    svc:applications touch:300
POST   /api/v1/applications/:id/revoke-tokens     general        json   256 api        problem    verified    svc:applications touch:300
GET    /api/v1/org                                general        none   256 api        problem    verified    svc:admin
PATCH  /api/v1/org                                general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/access                         general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/access/aws_role                general        json   256 api        problem    verified    svc:admin touch:300
PATCH  /api/v1/org/access/aws_role/:id            general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/access/aws_role/:id            general        none   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/access/host_group              general        json   256 api        problem    verified    svc:admin touch:300
PATCH  /api/v1/org/access/host_group/:id          general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/access/host_group/:id          general        none   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/access/check                   general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/access/export                  general        none   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/access/:kind/:id               general        none   256 api        problem    verified    svc:admin
PUT    /api/v1/org/access/:kind/:id               general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/access/:kind/:id/people        general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/access/:kind/:id/preview       general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/audit-checkpoints              general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/audit-checkpoints/proof        general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/audit-events                   general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/audit-questions                general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/audit-questions                general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/audit-questions/:id            general        none   256 api        problem    verified    svc:admin touch:300
GET    /admin/audit                               general        none   256 ui         html       optional
GET    /admin/audit/questions                     general        none   256 ui         html       optional
GET    /admin/audit/:id                           general        none   256 ui         html       optional
GET    /api/v1/org/domains                        general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/domains                        general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/domains/:domain/verify         general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/domains/:domain                general        none   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/issuer                         general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/issuer                         general        json   256 api        problem    verified    svc:admin touch:300
PATCH  /api/v1/org/issuer                         general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/issuer                         general        none   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/issuer/rotate                  general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/keys                           general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/members                        general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/members/:id                    general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/members/:id/promote            general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/demote             general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/deactivate         general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/activate           general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/enrollment-passes  general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/members/:id/enrollment-passes  general        none   256 api        problem    verified    svc:admin
DELETE /api/v1/org/members/:id/enrollment-passes  general        none   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/members/:id/enrollment-passes/demand general        none   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/revoke-credentials general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/remove             general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/readmit                general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/part               general        json   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/members/:id/give-address       general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/members/:id/sessions/:session_id general        none   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/members/:id/keys/:key_id       general        none   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/providers                      general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/providers                      general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/providers/:id                  general        none   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/api-tokens                     general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/api-tokens                     general        json   256 api        problem    verified    svc:admin touch:300
DELETE /api/v1/org/api-tokens/:id                 general        none   256 api        problem    verified    svc:admin touch:300
POST   /api/v1/org/api-tokens/:id/rotate          general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/programs/audit-events              general        none   256 api        problem    program     from:any audit:read header-only
GET    /api/v1/programs/members                   general        none   256 api        problem    program     from:any members:read header-only
GET    /api/v1/programs/access                    general        none   256 api        problem    program     from:any access:read header-only
GET    /api/v1/programs/access/:kind/:id          general        none   256 api        problem    program     from:any access:read header-only
GET    /api/v1/programs/applications              general        none   256 api        problem    program     from:any applications:read header-only
GET    /api/v1/programs/applications/:id          general        none   256 api        problem    program     from:any applications:read header-only
POST   /api/v1/programs/scim-tokens/:id/rotate    general        json   256 api        problem    program     from:any scim-tokens:rotate header-only
POST   /api/v1/org/scim-tokens                    general        json   256 api        problem    verified    svc:admin touch:300
GET    /api/v1/org/scim-tokens                    general        none   256 api        problem    verified    svc:admin
DELETE /api/v1/org/scim-tokens/:id                general        none   256 api        problem    verified    svc:admin
GET    /api/v1/org/secrets-to-confirm             general        none   256 api        problem    verified    svc:admin
POST   /api/v1/org/secrets-to-confirm/:id/confirm general        json   256 api        problem    verified    svc:admin touch:300

GET    /.well-known/ssf-configuration             unlimited      none   256 api        negotiated none
GET    /.well-known/oauth-protected-resource/ssf  unlimited      none   256 api        negotiated none
POST   /ssf/stream                                general        json   256 api        oauth      client      ssf.manage header-only
GET    /ssf/stream                                general        none   256 api        oauth      client      ssf.read header-only
PATCH  /ssf/stream                                general        json   256 api        oauth      client      ssf.manage header-only
PUT    /ssf/stream                                general        json   256 api        oauth      client      ssf.manage header-only
DELETE /ssf/stream                                general        none   256 api        oauth      client      ssf.manage header-only
GET    /ssf/status                                general        none   256 api        oauth      client      ssf.read header-only
POST   /ssf/status                                general        json   256 api        oauth      client      ssf.manage header-only
POST   /ssf/verify                                general        json   256 api        oauth      client      ssf.manage header-only
POST   /ssf/subjects/add                          general        json   256 api        oauth      client      ssf.manage header-only
POST   /ssf/subjects/remove                       general        json   256 api        oauth      client      ssf.manage header-only
POST   /ssf/poll/:id                              general        json   256 api        oauth      client      ssf.manage header-only

GET    /scim/v2/ServiceProviderConfig             general        none   64  api        scim       provisioner
GET    /scim/v2/Schemas                           general        none   64  api        scim       provisioner
GET    /scim/v2/Schemas/:id                       general        none   64  api        scim       provisioner
GET    /scim/v2/ResourceTypes                     general        none   64  api        scim       provisioner
GET    /scim/v2/ResourceTypes/:id                 general        none   64  api        scim       provisioner
GET    /scim/v2                                   general        none   64  api        scim       provisioner
POST   /scim/v2/.search                           general        scim   64  api        scim       provisioner
GET    /scim/v2/Me                                general        none   64  api        scim       provisioner
POST   /scim/v2/Me                                general        none   64  api        scim       provisioner
PUT    /scim/v2/Me                                general        none   64  api        scim       provisioner
PATCH  /scim/v2/Me                                general        none   64  api        scim       provisioner
DELETE /scim/v2/Me                                general        none   64  api        scim       provisioner
POST   /scim/v2/Bulk                              general        scim   64  api        scim       provisioner
POST   /scim/v2/Users                             general        scim   64  api        scim       provisioner
GET    /scim/v2/Users                             general        none   64  api        scim       provisioner
POST   /scim/v2/Users/.search                     general        scim   64  api        scim       provisioner
GET    /scim/v2/Users/:id                         general        none   64  api        scim       provisioner
PUT    /scim/v2/Users/:id                         general        scim   64  api        scim       provisioner
PATCH  /scim/v2/Users/:id                         general        scim   64  api        scim       provisioner
DELETE /scim/v2/Users/:id                         general        none   64  api        scim       provisioner
POST   /scim/v2/Groups                            general        scim   64  api        scim       provisioner
GET    /scim/v2/Groups                            general        none   64  api        scim       provisioner
POST   /scim/v2/Groups/.search                    general        scim   64  api        scim       provisioner
GET    /scim/v2/Groups/:id                        general        none   64  api        scim       provisioner
PUT    /scim/v2/Groups/:id                        general        scim   64  api        scim       provisioner
PATCH  /scim/v2/Groups/:id                        general        scim   64  api        scim       provisioner
DELETE /scim/v2/Groups/:id                        general        none   64  api        scim       provisioner
`
  .trim()
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.split(/\s+/).join(' '))
  .toSorted();

/** Returns a route as a row of {@link EXPECTED}. */
function rowOf({ method, template, policy }: CompiledRoute): string {
  const { tier, body, audience, errors, auth } = policy;
  return [
    method,
    template,
    tier,
    body.kind,
    body.max / KIB,
    audience,
    errors,
    auth.session,
    ...(auth.origin === ORIGINS[auth.session] ? [] : [`from:${auth.origin}`]),
    ...(auth.scope === undefined ? [] : [auth.scope]),
    ...(auth.touchedWithinSeconds === undefined ? [] : [`touch:${auth.touchedWithinSeconds}`]),
    ...(auth.headerOnly === true ? ['header-only'] : []),
    ...(policy.failureStatus === undefined ? [] : [`fails:${policy.failureStatus}`]),
    ...(policy.anonymousRows ? ['anonymous-rows'] : []),
    ...(policy.hosts === 'any' ? ['any-host'] : []),
    ...(policy.tenantHosts ? ['tenant-hosts'] : []),
    ...(policy.plainHttp ? ['plain-http'] : []),
    ...(policy.head ? [] : ['no-head']),
  ].join(' ');
}

/** The origin that a route accepts by default, for each kind of session that it can demand. */
const ORIGINS: Readonly<Record<string, string>> = {
  none: 'any',
  optional: 'ui',
  any: 'ui',
  verified: 'own',
  provisioner: 'any',
  client: 'any',
};

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

  it('has a row in the table that says what its controller states', () => {
    expect(routesOf(app).map(rowOf).toSorted()).toEqual(EXPECTED);
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

  it('needs no body if each member of its body has a default', () => {
    const needsOne = routesOf(app).filter(({ method, policy, schemas: { body } }) => {
      const isJson = method === 'POST' && policy.body.kind === 'json';
      return isJson && body?.safeParse({}).success && !body.safeParse(undefined).success;
    });
    expect(needsOne.map(({ method, template }) => `${method} ${template}`)).toEqual([]);
  });

  const tierOf = (method: string, path: string) =>
    app.nest.get(RoutePolicies).ofPath(method, path).tier;

  it.each([
    ['authentication', 'POST', '/oauth/token'],
    ['authentication', 'POST', '/oauth/par'],
    ['authentication', 'POST', '/oauth/fido2/challenge'],
    ['authentication', 'POST', '/oauth/device'],
    ['authentication', 'POST', '/oauth/register'],
    ['authentication', 'GET', '/oauth/register/:client'],
    ['authentication', 'POST', '/v1/keys/register/start'],
    ['authentication', 'POST', '/login/webauthn/complete'],
    ['authentication', 'POST', '/enroll/webauthn/start'],
    ['authentication', 'POST', '/device'],
    ['general', 'GET', '/device'],

    ['issuance', 'POST', '/v1/credentials/ssh'],
    ['issuance', 'POST', '/v1/credentials/ssh/challenge'],
    ['issuance', 'POST', '/v1/credentials/aws/token'],
    ['issuance', 'POST', '/v1/credentials/github/token'],

    ['general', 'GET', '/oauth/authorize'],
    ['general', 'GET', '/oauth/logout'],
    ['general', 'POST', '/oauth/introspect'],
    ['general', 'POST', '/oauth/revoke'],
    ['general', 'POST', '/api/v1/org/scim-tokens'],
    ['general', 'GET', '/scim/v2/Users/:id'],
    ['general', 'GET', '/v1/keys'],
    ['general', 'DELETE', '/v1/keys/:id'],
    ['general', 'GET', '/api/v1/applications'],
    ['general', 'GET', '/api/v1/applications/:id'],
    ['general', 'POST', '/api/webhooks/github'],
    ['general', 'GET', '/admin/audit'],
    ['general', 'GET', '/v1/credentials/ssh/ca'],
    ['general', 'GET', '/v1/credentials/ssh/allowed_signers/:organization'],
    ['general', 'GET', '/v1/credentials/ssh/krl'],
    ['general', 'GET', '/v1/credentials/ssh/krl/signatures'],
    ['general', 'GET', '/v1/credentials/ssh/krl/:serial'],
    ['general', 'GET', '/login'],
    ['general', 'GET', '/enroll'],
    ['general', 'GET', '/account/keys'],
    ['general', 'GET', '/account'],
    ['general', 'GET', '/account/sessions'],
    ['general', 'GET', '/account/nothing'],
    ['general', 'POST', '/logout'],
    ['general', 'POST', '/certification/complete-login'],

    ['unlimited', 'GET', '/'],
    ['unlimited', 'GET', '/static/:name'],
    ['unlimited', 'GET', '/health'],
    ['unlimited', 'GET', '/health/ready'],
    ['unlimited', 'GET', '/metrics'],
    ['unlimited', 'GET', '/oauth/jwks'],
    ['unlimited', 'GET', '/oauth/userinfo'],
    ['unlimited', 'GET', '/oauth/callback'],
    ['unlimited', 'POST', '/saml/acs'],
    ['unlimited', 'GET', '/saml/metadata'],
    ['unlimited', 'GET', '/openapi.json'],
    ['unlimited', 'GET', '/.well-known/openid-configuration'],

    ['unlimited', 'GET', '/v1/credentials'],
    ['unlimited', 'GET', '/wp-login.php'],
  ])('limits a request at its path, also where no route is: %s: %s %s', (tier, method, path) => {
    expect(tierOf(method, path)).toBe(tier);
  });

  it.each(['/V1/KEYS', '/v1/keys/', '/V1/Keys/7/'])('%s is /v1/keys', (path) => {
    expect(tierOf('GET', path)).toBe('general');
  });
});

describe('every route without a session', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('answers as its row states', async () => {
    for (const { method, template, policy } of routesOf(app)) {
      const answer = await app.client().send(method, template.replaceAll(/:\w+/g, 'x'));
      const of = `${method} ${template}`;
      const { tier, audience, auth } = policy;
      const limit = answer.headers.get('x-ratelimit-limit');
      const { burst } = TIERS[tier === 'unlimited' ? 'general' : tier];
      expect([of, limit]).toEqual([of, String(burst)]);
      const cache = answer.headers.get('cache-control');
      expect([of, cache?.includes('no-store')]).toEqual([of, audience !== 'ui']);
      const cors = answer.headers.get('access-control-allow-origin');
      expect([of, cors]).toEqual([of, audience === 'api' ? '*' : null]);
      if (template.startsWith('/oauth/')) continue; // these check credentials in their handlers
      const refused = ['any', 'verified', 'provisioner', 'client', 'program'].includes(
        auth.session,
      );
      expect([of, answer.status === 401]).toEqual([of, refused]);
    }
  });
});

/** Returns the routes of an application, compiled from `@Route`. */
function routesOf(app: TestApp): readonly CompiledRoute[] {
  return app.nest.get(RoutePolicies).routes;
}
