import { z } from 'zod';
import { shortText } from '#platform/config/shapes/base-shapes.js';
import {
  attributeName,
  domainPatterns,
  entityId,
  metadataUrl,
  safeUrl,
} from '#platform/config/shapes/setting-shapes.js';
import { secret, variable } from './variable.js';

const COMMON = {
  type: variable('TYPE', z.enum(['oidc', 'saml'], 'must be oidc or saml'), {
    meaning: 'The protocol of the provider: `oidc` or `saml`.',
    unset: '**required**',
  }),
  name: variable('NAME', shortText(64).optional(), {
    meaning: 'The label of its button.',
    unset: 'the slug',
  }),
  domains: variable('DOMAINS', domainPatterns.optional(), {
    meaning:
      'The only domains that the provider may vouch for, comma-separated; `*.corp.example` has every subdomain. Set it for each provider once there are several.',
    unset: 'every domain',
  }),
};

/** The variables of one provider by its type: the names after the prefix `SVC_IDP_<SLUG>_`. */
export const PROVIDERS = {
  oidc: {
    ...COMMON,
    issuer: variable('ISSUER', safeUrl, {
      meaning: 'OpenID Connect: its issuer, an https URL (http only on loopback).',
    }),
    clientId: variable('CLIENT_ID', z.string(), {
      meaning: 'OpenID Connect: the client id of this service there.',
    }),
    clientSecret: secret('CLIENT_SECRET', z.string(), {
      meaning: 'OpenID Connect: the client secret of this service there.',
    }),
  },
  saml: {
    ...COMMON,
    metadataUrl: variable('METADATA_URL', metadataUrl, {
      meaning: 'SAML: the address of its metadata, an https URL (http only on loopback).',
    }),
    spEntityId: variable('SP_ENTITY_ID', entityId.optional(), {
      meaning: 'SAML: the entity id of this service there, a URI.',
      unset: '`{SVC_BASE_URL}/saml/metadata`',
    }),
    emailAttribute: variable('EMAIL_ATTRIBUTE', attributeName.optional(), {
      meaning: 'SAML: the name of the attribute with the e-mail address of the user.',
      unset: 'the NameID, in the format `emailAddress`',
    }),
    domainAttribute: variable('DOMAIN_ATTRIBUTE', attributeName.optional(), {
      meaning:
        'SAML: the name of the attribute with the domain of the organization. It must be the domain of the e-mail address.',
      unset: 'the domain of the e-mail address',
    }),
  },
};
