import { z } from 'zod';
import { longText, wholeNumber } from '#platform/config/shapes/base-shapes.js';
import { certificates } from '#platform/config/shapes/key-shapes.js';
import { aaguidPolicy, lowerCasedSet, slugs } from '#platform/config/shapes/setting-shapes.js';
import { secret, variable } from './variable.js';

/** The people who may use the service, and how long. */
export const ACCESS = {
  upstream: {
    slugs: variable('SVC_IDPS', slugs.default([]), {
      meaning: 'Comma-separated slugs of the identity providers, in the order of their buttons.',
      unset: '**required**',
    }),
    extraCaCerts: variable('SVC_EXTRA_CA_CERTS', certificates.default([]), {
      meaning: 'More certificate authorities for requests to identity providers: PEM, or a file.',
    }),
  },
  enrollment: {
    allowedDomains: variable('SVC_ALLOWED_DOMAINS', lowerCasedSet.optional(), {
      meaning: 'The e-mail domains that may enroll.',
      unset: 'any',
    }),
    bootstrapAdmins: variable('SVC_BOOTSTRAP_ADMINS', lowerCasedSet.optional(), {
      meaning:
        'The only e-mail addresses that may become the admin of an organization that has no admin.',
      unset: 'the first user of an organization',
    }),
    allowedAaguids: variable('SVC_ALLOWED_AAGUIDS', aaguidPolicy.default({ kind: 'any' }), {
      meaning:
        'The models of security keys that may enroll: `fips-only`, `yubikey-5`, or a comma-separated list of AAGUIDs.',
      unset: 'any',
    }),
  },
  certification: {
    token: secret('SVC_CERTIFICATION_TEST_TOKEN', longText(32).optional(), {
      meaning:
        'Turns certification test mode on: no rate limits, and logins without a key. Never set it in production.',
    }),
    host: variable('SVC_CERTIFICATION_HOST', z.string().toLowerCase().optional(), {
      meaning: 'The public host of certification test mode.',
      unset: 'that mode starts on loopback only',
    }),
  },
  session: {
    hours: variable('SVC_SESSION_HOURS', wholeNumber(1, 12).default(8), {
      meaning: 'Hours that a session lasts, 1 to 12. A session is never renewed.',
    }),
  },
};
