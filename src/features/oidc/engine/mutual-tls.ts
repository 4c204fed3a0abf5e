import { X509Certificate } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { clientCertificateOf } from '#platform/http/request/client-certificate.js';
import { leadsToAuthority } from '../protocol/clients/client-certificate-path.js';
import { compareSubjectDn } from '../protocol/clients/subject-dn.js';
import {
  errors,
  type ClientAuthMethod,
  type Configuration,
  type KoaContextWithOIDC,
} from '../protocol/library.js';

type Feature = NonNullable<NonNullable<Configuration['features']>['mTLS']>;

/** The authentication methods that use a client certificate (RFC 8705 §2). */
const METHODS: readonly ClientAuthMethod[] = ['tls_client_auth', 'self_signed_tls_client_auth'];

const logger = new Logger('oidc');

/**
 * Returns the methods by which a client authenticates with its TLS certificate (RFC 8705 §2). The
 * list is empty if this server does not terminate TLS, because no certificate reaches it then.
 */
export function mutualTlsMethods({ tls }: Config['http']): ClientAuthMethod[] {
  return tls ? [...METHODS] : [];
}

/**
 * Returns the settings of mutual TLS (RFC 8705) for the OAuth library. Certificates come only from
 * the TLS layer, and never from a header.
 */
export function mutualTls({ tls, mtls }: Config['http'], clock: Clock = systemClock): Feature {
  if (!tls) return { enabled: false };
  const authorities = mtls.clientCaCerts.map((pem) => new X509Certificate(pem));
  return {
    enabled: true,
    certificateBoundAccessTokens: true,
    selfSignedTlsClientAuth: true,
    tlsClientAuth: true,
    getCertificate: (ctx) => clientCertificateOf(ctx.req),
    certificateAuthorized: (ctx) => isAuthorized(ctx, authorities, clock.now()),
    certificateSubjectMatches: matchesSubject,
  };
}

/**
 * Returns true if the client certificate's chain leads to a trusted authority, as the method
 * `tls_client_auth` demands. A certificate that cannot be read is logged and refused. The method
 * `self_signed_tls_client_auth` needs no authority (RFC 8705 §2.2).
 */
function isAuthorized(
  ctx: KoaContextWithOIDC,
  authorities: readonly X509Certificate[],
  now: Date,
): boolean {
  const certificate = clientCertificateOf(ctx.req);
  try {
    return !!certificate && leadsToAuthority(certificate, authorities, now);
  } catch (error) {
    logger.warn({ err: error }, 'a client certificate cannot be read');
    return false;
  }
}

/**
 * Returns true if the client's certificate has the subject that the client registered.
 * @throws InvalidClientAuth `subject mismatch` for another subject
 */
function matchesSubject(ctx: KoaContextWithOIDC, property: string, expected: string): boolean {
  const certificate = clientCertificateOf(ctx.req);
  if (!certificate || property !== 'tls_client_auth_subject_dn') return false;
  const comparison = compareSubjectDn(expected, certificate.raw);
  if (comparison === 'match') return true;
  if (comparison === 'reversed') {
    logger.warn(
      `RDN order reversed: register the subject of ${ctx.oidc.client?.clientId} in the order of RFC 4514`,
    );
  }
  const mismatch = new errors.InvalidClientAuth('subject mismatch');
  mismatch.error_description = 'subject mismatch';
  throw mismatch;
}
