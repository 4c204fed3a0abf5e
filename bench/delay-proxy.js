import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';

/**
 * Starts a TCP proxy that delays every byte by half of a round trip in each direction, so that the
 * server behind it seems to be far away. A connection costs its round trip, too.
 *
 * @param port the port of the server behind it, on loopback
 * @param roundTrip in milliseconds
 */
export async function startDelayProxy(port, roundTrip) {
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (socket) => {
    const onward = createConnection({ host: '127.0.0.1', port, noDelay: true });
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ]) {
      sockets.add(from);
      const later = (act) => setTimeout(act, roundTrip / 2);
      from.on('data', (bytes) => later(() => to.writable && to.write(bytes)));
      from.on('end', () => later(() => to.end()));
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
