import { MetadataFault, readIdpMetadata } from '#domain/providers/saml/metadata/idp-metadata.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS, NOW } from '../signed-inputs.js';
import { MARKUP, SAML_WORDS } from './expectations.js';

const DAY = 86_400_000;

export const target: FuzzTarget = {
  parser: 'readIdpMetadata',
  seeds: [
    Buffer.from(INPUTS.saml.metadata),
    Buffer.from(
      INPUTS.saml.metadata.replace(
        'entityID=',
        'validUntil="2026-02-01T00:00:00Z" cacheDuration="PT12H" entityID=',
      ),
    ),
  ],
  dictionary: [
    ...SAML_WORDS,
    'cacheDuration="P1D"',
    'validUntil="2026-01-16T00:00:00Z"',
    'use="encryption"',
    'use="signing"',
    '<md:EntitiesDescriptor>',
    '<md:IDPSSODescriptor ',
    '<md:KeyDescriptor>',
    'http://',
    'https://',
  ],
  structure: wordsBy(MARKUP),
  longest: 16_384,
  run(input) {
    const metadata = attempt(
      () => readIdpMetadata(input.toString(), 'https://idp.example.com/metadata', NOW.getTime()),
      (error) => error instanceof MetadataFault,
    );
    if (!metadata) return false;
    const { entityId, ssoUrl, keys, validUntil, cacheFor } = metadata;
    rule(entityId !== '' && !/[\r\n]/.test(entityId), 'an entity id that is empty or of two lines');
    rule(new URL(ssoUrl).protocol === 'https:', 'an address without encryption');
    rule(keys.length > 0 && keys.every(({ type }) => type === 'public'), 'no signing key');
    rule(validUntil > NOW.getTime(), 'metadata that are out of date');
    rule(cacheFor >= 300_000 && cacheFor <= DAY, 'a cache time out of its bounds');
    return true;
  },
};
