import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A Unix socket in front of a real database server, which a test can close. */
export interface DatabaseProxy {
  /** The URL by which a client reaches the database through the proxy. */
  readonly url: string;
  /**
   * Passes nothing on and closes no connection, as if the machine of the server had vanished. New
   * connections are accepted, and get no answer.
   */
  freeze(): void;
  /**
   * Gives new connections no answer, as a server that is too busy to begin a session. The others go
   * on.
   */
  holdNew(): void;
  /**
   * Lets no client close its connection, as if the server froze after the last statement. It passes
   * on everything else.
   */
  keepOpen(): void;
  /** Closes every connection and accepts no more, as if the server had ended. */
  down(): Promise<void>;
  /** Accepts connections again. */
  up(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a proxy for the database of a `postgres://…?host=SOCKET_DIR&port=PORT` URL. */
export async function startDatabaseProxy(url: string): Promise<DatabaseProxy> {
  const query = new URLSearchParams(url.slice(url.indexOf('?')));
  const socketOf = (directory: string) => join(directory, `.s.PGSQL.${query.get('port')}`);
  const target = socketOf(query.get('host') ?? '');
  const folder = await mkdtemp(join(tmpdir(), 'svc-proxy-'));
  const open = new Set<Socket>();
  let server: Server | undefined;
  let holdsNew = false;
  let keepsOpen = false;

  const up = async () => {
    const listening = createServer({ allowHalfOpen: true }, (socket) => {
      if (holdsNew) {
        open.add(socket.on('error', () => undefined));
        return;
      }
      const onward = createConnection(target);
      for (const [one, other] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        open.add(one);
        one.pipe(other, { end: false });
        one.on('end', () => keepsOpen || other.end());
        one.on('error', () => other.destroy());
        one.on('close', () => {
          open.delete(one);
          if (!keepsOpen) other.destroy();
        });
      }
    });
    server = listening;
    await new Promise<void>((resolve) => {
      listening.listen(socketOf(folder), resolve);
    });
  };
  const down = async () => {
    const stopping = server;
    server = undefined;
    for (const socket of open) socket.destroy();
    await new Promise<void>((resolve) => {
      if (stopping) stopping.close(() => resolve());
      else resolve();
    });
  };
  await up();
  return {
    url: url.replace(/host=[^&]+/, `host=${encodeURIComponent(folder)}`),
    freeze: () => {
      holdsNew = true;
      for (const socket of open) socket.unpipe().pause();
    },
    holdNew: () => {
      holdsNew = true;
    },
    keepOpen: () => {
      keepsOpen = true;
    },
    up,
    down,
    close: async () => {
      await down();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
