import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * The certificates of open connections. Node 24 hands out those behind the client's own at the first call alone: later
 * calls for the same connection come back without them.
 */
const certificates = new WeakMap<TLSSocket, X509Certificate | undefined>();

/**
 * The certificate that a client presented in the TLS handshake, from the request's own connection and nowhere else, with
 * the certificates presented behind it in `issuerCertificate`; undefined where none was presented. The handshake proves
 * that the client holds its key, and nothing about its issuer.
 */
export function clientCertificateOf({
  socket,
}: Pick<IncomingMessage, 'socket'>): X509Certificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  if (!certificates.has(socket)) certificates.set(socket, socket.getPeerX509Certificate());
  return certificates.get(socket);
}
