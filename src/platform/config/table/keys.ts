import { z } from 'zod';
import { flag, rootSecret, wholeNumber } from '#platform/config/shapes/base-shapes.js';
import { ecSigningKeys, rsaSigningKeys } from '#platform/config/shapes/key-shapes.js';
import {
  audience,
  domainName,
  kmsKeyId,
  kmsKeyIds,
  lastingKmsKeyIds,
  principalKinds,
} from '#platform/config/shapes/setting-shapes.js';
import { secret, variable } from './variable.js';

/** The keys and secrets of the service, and the tokens and certificates that they sign. */
export const KEYS = {
  secrets: {
    root: secret('SVC_JWT_SECRET', rootSecret.optional(), {
      meaning: 'The root secret, 32 characters or more.',
      unset: '**required**, or else SVC_JWT_HMAC_KMS_KEY_ID',
    }),
    previousRoot: secret('SVC_JWT_SECRET_PREVIOUS', rootSecret.optional(), {
      meaning: 'The previous root secret, which still opens data that was sealed under it.',
    }),
    kmsKeyId: variable('SVC_JWT_HMAC_KMS_KEY_ID', kmsKeyId.optional(), {
      meaning:
        'A key in AWS KMS (HMAC_256) that makes the root secret at each start. Excludes SVC_JWT_SECRET.',
      kmsUse: 'HMAC',
    }),
    previousKmsKeyId: variable('SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS', kmsKeyId.optional(), {
      meaning: 'The key in AWS KMS that made the previous root secret.',
      kmsUse: 'HMAC',
    }),
  },
  oidc: {
    signingKeys: {
      ec: secret('SVC_OIDC_SIGNING_KEY', ecSigningKeys.optional(), {
        meaning:
          'P-256 keys in PEM, or a file: the first one signs tokens (ES256), the others are only published.',
        unset: 'a key in the database',
      }),
      rsa: secret('SVC_OIDC_RSA_SIGNING_KEY', rsaSigningKeys.optional(), {
        meaning: 'The same for RS256: RSA keys of 3072 bits or more.',
        unset: 'a key in the database',
      }),
    },
    signingKmsKeyIds: {
      ec: variable('SVC_OIDC_SIGNING_KMS_KEY_ID', kmsKeyIds.default([]), {
        meaning:
          'Keys in AWS KMS (ECC_NIST_P256), comma-separated ids or ARNs: the first one signs tokens (ES256), the others are only published.',
        kmsUse: 'ES256',
      }),
      rsa: variable('SVC_OIDC_RSA_SIGNING_KMS_KEY_ID', kmsKeyIds.default([]), {
        meaning: 'The same for RS256: keys of the spec RSA_3072 or RSA_4096.',
        kmsUse: 'RS256',
      }),
    },
    deviceCode: {
      expiresSeconds: variable('SVC_DEVICE_CODE_EXPIRES', wholeNumber(60, 3600).default(600), {
        meaning: 'Seconds that a device waits for its user, 60 to 3600.',
      }),
      pollIntervalSeconds: variable('SVC_DEVICE_POLL_INTERVAL', wholeNumber(1, 60).default(5), {
        meaning: 'Seconds between two polls of a device, 1 to 60.',
      }),
    },
  },
  documentKey: {
    kmsKeyIds: variable('SVC_DOCUMENT_KEY_KMS_KEY_ID', lastingKmsKeyIds.default([]), {
      meaning:
        'Keys in AWS KMS, ids or ARNs, comma-separated: the first one wraps the document encryption key, the others still open it. Issuer subdomains need it.',
      unset: 'no organization can have an issuer',
      kmsUse: 'data keys',
    }),
  },
  kms: {
    endpoint: variable('AWS_ENDPOINT_URL_KMS', z.string().optional(), {
      meaning: 'The address of AWS KMS: https, or http on loopback.',
      unset: 'AWS_ENDPOINT_URL, or else the address of AWS',
    }),
    anyEndpoint: variable('AWS_ENDPOINT_URL', z.string().optional(), {
      meaning: 'The address of the services of AWS that have no variable of their own.',
      unset: 'the addresses of AWS',
    }),
  },
  ssh: {
    caKmsKeyIds: variable('SVC_SSH_CA_KMS_KEY_ID', kmsKeyIds.default([]), {
      meaning:
        'Keys of the SSH authority in AWS KMS, Ed25519 or P-256, comma-separated: the first one signs, the others are only published.',
      unset: 'no key in KMS',
      kmsUse: 'Ed25519 or ES256',
    }),
    caKey: secret('SVC_SSH_CA_KEY', z.string().optional(), {
      meaning:
        'The keys of the SSH authority, Ed25519 or P-256: private ones in OpenSSH format or PKCS#8, not encrypted, public ones as lines or PEM. The first one signs where no key in KMS does, the others are only published.',
    }),
    caKeyPath: variable('SVC_SSH_CA_KEY_PATH', z.string().optional(), {
      meaning: 'The file of those keys, made at the first start where no key in KMS signs.',
      unset: '`{SVC_DATA_DIR}/ssh_ca_key`',
    }),
    principals: variable('SVC_SSH_PRINCIPALS', principalKinds, {
      meaning: 'The principals of a certificate: `email`, `username` or both, comma-separated.',
      unset: '`email`',
    }),
    principalsDomain: variable('SVC_SSH_PRINCIPALS_DOMAIN', domainName.optional(), {
      meaning:
        'A domain. Only members of the organization that owns it get `username` principals. Required for `username` once there are several organizations.',
      unset: 'the only organization',
    }),
    requireSecurityKey: variable('SVC_SSH_REQUIRE_SK', flag, {
      meaning:
        '`true` refuses SSH certificates for every key but one in a security key, proven by its attestation.',
      unset: '`false`',
    }),
  },
  aws: {
    audience: variable('SVC_AWS_AUDIENCE', audience.default('sts.amazonaws.com'), {
      meaning:
        'The `aud` of tokens for AWS, which the identity provider in IAM lists as a client id.',
    }),
  },
};
