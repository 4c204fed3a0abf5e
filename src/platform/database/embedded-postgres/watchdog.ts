import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { CHILD_ENVIRONMENT, type Account } from './account.js';

/**
 * A shell script that runs the given command, and stops it if this process ends, also by `kill -9`.
 * The end of this process closes the standard input of the script. A background process of the
 * script waits for that, and sends the command SIGINT (a fast shutdown). SIGCONT follows, because a
 * command that was frozen by SIGSTOP handles no other signal. If the command does not end within
 * `grace` seconds, it gets SIGQUIT (an immediate shutdown, after which the write-ahead log recovers
 * the data). If the background process ends with status 0, the stop was requested, and the
 * directory of the socket is removed. The exit status is that of the command.
 */
const WATCHDOG = `
trap '' INT TERM HUP
sockets=$1; grace=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(read _ <&3; exec 3<&-; trap 'kill $!; exit 0' USR1; kill -INT $server; kill -CONT $server; sleep "$grace" & wait; kill -QUIT $server) 2>/dev/null &
watcher=$!
exec 3<&-
wait $server
status=$?
kill -USR1 $watcher 2>/dev/null
wait $watcher && rmdir "$sockets" 2>/dev/null
exit $status`;

/** The number of the server's last lines that an error shows. */
const LINES_KEPT = 5;

/** The seconds that a fast shutdown may take. It needs time because it writes a checkpoint. */
const SHUTDOWN_GRACE = 10;

/**
 * The milliseconds to wait for the last lines of a server that has ended. The lines may arrive
 * after its exit. The wait is limited, because a remaining backend may keep the pipe open.
 */
const WAIT_FOR_LINES = 200;

/** A running server. It ends at the latest when this process ends. */
export interface WatchedServer {
  /** Resolves to the server's last lines when the server has ended. It never rejects. */
  readonly ended: Promise<string>;
  isRunning(): boolean;
  /**
   * Starts a fast shutdown. If it takes too long, an immediate shutdown follows. `ended` resolves
   * when the server has ended.
   */
  stop(): void;
  /**
   * Makes this process neither wait for the server nor read its output any longer, so that the
   * process can end. The watchdog goes on to stop the server.
   */
  abandon(): void;
}

/** The account and directories of a server, and the receiver of its log lines. */
export interface WatchOptions {
  readonly account: Account;
  readonly cwd: string;
  readonly socketDir: string;
  readonly onLine: (line: string) => void;
  /** The whole seconds that a fast shutdown may take before an immediate shutdown follows. */
  readonly grace?: number;
}

/**
 * Starts a command under the watchdog, in a process group of its own, so that Ctrl-C in a terminal
 * reaches this process alone. This process then stops the server when it no longer needs the
 * database.
 */
export function startWatched(command: readonly string[], options: WatchOptions): WatchedServer {
  const { account, cwd, socketDir, onLine, grace = SHUTDOWN_GRACE } = options;
  const child = spawn('/bin/sh', ['-c', WATCHDOG, 'sh', socketDir, String(grace), ...command], {
    ...account.credentials,
    cwd,
    env: CHILD_ENVIRONMENT,
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
  });
  child.stdin.on('error', () => undefined); // the child may end before its input is closed
  const lastLines: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line);
    if (lastLines.length > LINES_KEPT) lastLines.shift();
    onLine(line);
  });
  let running = true;
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => {
      running = false;
      resolve(error.message);
    });
    child.once('exit', (code, signal) => {
      running = false;
      const tell = () => resolve([...lastLines, `exit status ${code ?? signal}`].join(' | '));
      child.once('close', tell);
      setTimeout(tell, WAIT_FOR_LINES);
    });
  });
  return {
    ended,
    isRunning: () => running,
    stop: () => void child.stdin.end(),
    abandon: () => {
      child.stderr.destroy();
      child.unref();
    },
  };
}
