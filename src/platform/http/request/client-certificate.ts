import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * The client certificates of open connections. They are kept because Node 24 returns the
 * certificates of the issuers only at the first call for a connection.
 */
const certificates = new WeakMap<TLSSocket, X509Certificate | undefined>();

/**
 * Reads the certificate that a client presented in the TLS handshake of the request's own
 * connection, with the certificates behind it in `issuerCertificate`; undefined if the client
 * presented none. The handshake proves that the client has the private key; it proves nothing about
 * the issuer.
 */
export function clientCertificateOf({
  socket,
}: Pick<IncomingMessage, 'socket'>): X509Certificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  if (!certificates.has(socket)) certificates.set(socket, socket.getPeerX509Certificate());
  return certificates.get(socket);
}
