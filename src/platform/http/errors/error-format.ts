import { RouteTable } from '#platform/text/route-table.js';

/** Who an error is told to: a program by one of three dialects, or a person by a page. */
export type Voice = 'problem' | 'oauth' | 'scim' | 'page';

/** Which voice answers where. Elsewhere, where nothing is, the request's `Accept` decides. */
export const VOICES = new RouteTable<Voice>([
  ['/v1/*', 'problem'],
  ['/api/*', 'problem'],
  ['/certification/*', 'problem'],
  ['/login/webauthn/*', 'problem'],
  ['/enroll/webauthn/*', 'problem'],
  ['/device/*', 'problem'],

  ['/oauth/*', 'oauth'],
  ['/oauth/authorize*', 'page'],
  ['/oauth/logout*', 'page'],
  ['/oauth/callback*', 'page'],

  ['/scim/*', 'scim'],

  ['/', 'page'],
  ['/login', 'page'],
  ['/enroll', 'page'],
  ['/keys', 'page'],
  ['/sessions', 'page'],
  ['/logout', 'page'],
  ['/device', 'page'],
  ['/saml/acs', 'page'],
  ['/admin/*', 'page'],
]);
