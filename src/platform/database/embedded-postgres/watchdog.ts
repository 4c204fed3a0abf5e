import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { CHILD_ENVIRONMENT, type Account } from './account.js';

/**
 * Runs the command after it and interrupts it (SIGINT: a fast shutdown) once standard input ends, as it does when
 * this process closes it or dies, by `kill -9` too. A postmaster that waits for children in vain heeds no interrupt: after
 * the grace it is told to quit (SIGQUIT: an immediate shutdown; its log has all that was committed). The watcher waits for
 * that end while the shell waits for the command, so that either may come first. A watcher that ends with 0 tells that
 * the end was asked for: then the socket's directory goes too. The exit status is the command's.
 */
const WATCHDOG = `
trap '' INT TERM HUP
sockets=$1; grace=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(read _ <&3; exec 3<&-; trap 'kill $!; exit 0' USR1; kill -INT $server; sleep "$grace" & wait; kill -QUIT $server) 2>/dev/null &
watcher=$!
exec 3<&-
wait $server
status=$?
kill -USR1 $watcher 2>/dev/null
wait $watcher && rmdir "$sockets" 2>/dev/null
exit $status`;

/** How many of the server's last lines an error quotes. */
const LINES_KEPT = 5;

/** Seconds for a fast shutdown, which writes a checkpoint. */
const SHUTDOWN_GRACE = 10;

/** In milliseconds: its last lines may arrive after its end, but a backend that lingers may hold the pipe open. */
const WAIT_FOR_LINES = 200;

/** A server that ends with this process at the latest. */
export interface WatchedServer {
  /** Settles when it has ended, whyever: with the last lines it wrote. Never rejects. */
  readonly ended: Promise<string>;
  isRunning(): boolean;
  /** Asks for a fast shutdown, and for an immediate one where that takes too long; `ended` tells when it is done. */
  stop(): void;
}

/** Where and as whom a server runs, and who hears what it writes. */
export interface WatchOptions {
  readonly account: Account;
  readonly cwd: string;
  readonly socketDir: string;
  readonly onLine: (line: string) => void;
  /** Whole seconds for a fast shutdown, before an immediate one. */
  readonly grace?: number;
}

/**
 * Starts a command under the watchdog. It is detached: Ctrl-C in a terminal reaches this process only, which then
 * stops the server when it no longer needs it.
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
  child.stdin.on('error', () => undefined); // it ended first
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
  return { ended, isRunning: () => running, stop: () => void child.stdin.end() };
}
