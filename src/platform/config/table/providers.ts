import { z } from 'zod';
import * as s from './shapes.js';
import { rowsOf, secret, variable, type Variable } from './variable.js';

const COMMON = {
  type: variable('TYPE', s.oneOf('oidc', 'saml'))
    .means('The protocol of the provider: `oidc` or `saml`.')
    .whenUnset('**required**'),
  name: variable('NAME', s.shortText(64).optional())
    .means('The label of its button.')
    .whenUnset('the slug'),
  domains: variable('DOMAINS', s.domainPatterns.optional())
    .means(
      'The only domains that the provider may vouch for, comma-separated; `*.corp.example` has every subdomain. Set it for each provider once there are several.',
    )
    .whenUnset('every domain'),
};

/** The variables of an identity provider, by its type, without their prefix `SVC_IDP_<SLUG>_`. */
export const PROVIDERS = {
  oidc: {
    ...COMMON,
    issuer: variable('ISSUER', s.safeUrl).means(
      'OpenID Connect: its issuer, an https URL (http only on loopback).',
    ),
    clientId: variable('CLIENT_ID', z.string()).means(
      'OpenID Connect: the client id of this service there.',
    ),
    clientSecret: secret('CLIENT_SECRET', z.string()).means(
      'OpenID Connect: the client secret of this service there.',
    ),
  },
  saml: {
    ...COMMON,
    metadataUrl: variable('METADATA_URL', s.metadataUrl).means(
      'SAML: the address of its metadata, an https URL (http only on loopback).',
    ),
    spEntityId: variable('SP_ENTITY_ID', s.entityId.optional())
      .means('SAML: the entity id of this service there, a URI.')
      .whenUnset('`{SVC_BASE_URL}/saml/metadata`'),
    emailAttribute: variable('EMAIL_ATTRIBUTE', s.printable(512).optional())
      .means('SAML: the name of the attribute with the e-mail address of the user.')
      .whenUnset('the NameID, in the format `emailAddress`'),
    domainAttribute: variable('DOMAIN_ATTRIBUTE', s.printable(512).optional())
      .means(
        'SAML: the name of the attribute with the domain of the organization. It must be the domain of the e-mail address.',
      )
      .whenUnset('the domain of the e-mail address'),
  },
};

/** The variables of identity providers of all types, by their names after the prefix. */
export const PROVIDER_VARIABLES: ReadonlyMap<string, Variable> = new Map(
  Object.values(PROVIDERS)
    .flatMap(rowsOf)
    .map((row) => [row.name, row]),
);
