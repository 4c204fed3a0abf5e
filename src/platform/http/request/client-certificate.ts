import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * The client certificates of open connections. Each is stored, because Node 24 returns the issuers'
 * certificates only at the first call for a connection.
 */
const certificates = new WeakMap<TLSSocket, X509Certificate | undefined>();

/**
 * Returns the certificate that a client presented in the TLS handshake of this connection, with the
 * issuers' certificates in `issuerCertificate`; undefined if the client presented no certificate.
 * The handshake proves that the client has the private key. It proves nothing about the issuer.
 */
export function clientCertificateOf({
  socket,
}: Pick<IncomingMessage, 'socket'>): X509Certificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  if (!certificates.has(socket)) certificates.set(socket, socket.getPeerX509Certificate());
  return certificates.get(socket);
}
