import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * The certificates of open connections. Node 24 returns the certificates behind the client's own
 * only at the first call: later calls for the same connection lack them.
 */
const certificates = new WeakMap<TLSSocket, X509Certificate | undefined>();

/**
 * Reads the certificate that a client presented in the TLS handshake of the request's own
 * connection, with the certificates behind it in `issuerCertificate`; undefined if the client
 * presented none. The handshake proves that the client holds its key, and nothing about its issuer.
 */
export function clientCertificateOf({
  socket,
}: Pick<IncomingMessage, 'socket'>): X509Certificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  if (!certificates.has(socket)) certificates.set(socket, socket.getPeerX509Certificate());
  return certificates.get(socket);
}
