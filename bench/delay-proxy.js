import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';

/**
 * Starts a TCP proxy that makes the server behind it seem far away. It delays every byte by half of
 * a round trip in each direction. The TCP handshake of a new connection takes no extra time.
 *
 * @param port the port of the server behind it, on loopback
 * @returns `setRoundTrip` sets the milliseconds of a round trip, which are 0 at first
 */
export async function startDelayProxy(port) {
  let half = 0;
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (socket) => {
    const onward = createConnection({ host: '127.0.0.1', port, noDelay: true });
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ]) {
      sockets.add(from);
      from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), half));
      from.on('end', () => setTimeout(() => to.end(), half));
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    setRoundTrip: (milliseconds) => (half = milliseconds / 2),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
