import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/** The certificate a client presented in the TLS handshake. */
export interface ClientCertificate {
  readonly certificate: X509Certificate;
  /** Whether its chain ends in one of SVC_MTLS_CLIENT_CA_CERTS. */
  readonly authorized: boolean;
}

/** The client certificate of a request, from its own connection and nowhere else; undefined where none was presented. */
export function clientCertificateOf({
  socket,
}: Pick<IncomingMessage, 'socket'>): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const certificate = socket.getPeerX509Certificate();
  return certificate && { certificate, authorized: socket.authorized };
}
