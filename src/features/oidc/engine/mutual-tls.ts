import { Inject, Injectable, Logger } from '@nestjs/common';
import { X509Certificate } from 'node:crypto';
import {
  errors,
  type ClientAuthMethod,
  type Configuration,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import { CONFIG, type Config } from '#platform/config/config.js';
import { clientCertificateOf } from '#platform/http/request/client-certificate.js';
import { leadsToAuthority } from '../protocol/clients/client-certificate-path.js';
import { compareSubjectDn } from '../protocol/clients/subject-dn.js';

type Feature = NonNullable<NonNullable<Configuration['features']>['mTLS']>;

/** Client certificates (RFC 8705), as the TLS layer saw them: no header ever supplies one. */
@Injectable()
export class MutualTls {
  readonly #isListening: boolean;
  readonly #authorities: readonly X509Certificate[];
  readonly #logger = new Logger('oidc');

  constructor(@Inject(CONFIG) config: Config) {
    this.#isListening = config.http.tls !== undefined;
    this.#authorities = config.http.mtls.clientCaCerts.map((pem) => new X509Certificate(pem));
  }

  /** How clients may authenticate with a certificate: where nobody asks for one, not at all. */
  authMethods(): ClientAuthMethod[] {
    return this.#isListening ? ['tls_client_auth', 'self_signed_tls_client_auth'] : [];
  }

  feature(): Feature {
    if (!this.#isListening) return { enabled: false };
    return {
      enabled: true,
      certificateBoundAccessTokens: true,
      selfSignedTlsClientAuth: true,
      tlsClientAuth: true,
      getCertificate: (ctx) => clientCertificateOf(ctx.req),
      certificateAuthorized: (ctx) => this.#isAuthorized(ctx),
      certificateSubjectMatches: (ctx, property, expected) =>
        this.#matches(ctx, property, expected),
    };
  }

  /** Asked for `tls_client_auth` alone: a self-signed certificate needs no authority (RFC 8705 §2.2). */
  #isAuthorized(ctx: KoaContextWithOIDC): boolean {
    const certificate = clientCertificateOf(ctx.req);
    try {
      return !!certificate && leadsToAuthority(certificate, this.#authorities, new Date());
    } catch (error) {
      this.#logger.warn({ err: error }, 'a client certificate cannot be read');
      return false;
    }
  }

  /** @throws InvalidClientAuth `subject mismatch` when the subject is another */
  #matches(ctx: KoaContextWithOIDC, property: string, expected: string): boolean {
    const certificate = clientCertificateOf(ctx.req);
    if (!certificate || property !== 'tls_client_auth_subject_dn') return false;
    const verdict = compareSubjectDn(expected, certificate.raw);
    if (verdict === 'match') return true;
    if (verdict === 'reversed') {
      this.#logger.warn(
        `RDN order reversed: register the subject of ${ctx.oidc.client?.clientId} in the order of RFC 4514`,
      );
    }
    const mismatch = new errors.InvalidClientAuth('subject mismatch');
    mismatch.error_description = 'subject mismatch';
    throw mismatch;
  }
}
