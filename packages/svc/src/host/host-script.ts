import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { CliFailure, STATUS } from '../program/failure.js';
import { accepted } from '../server/server-client.js';
import { send } from '../server/transport.js';
import type { Terminal } from '../terminal/terminal.js';

/**
 * The script `/install-host.sh` of a server. It makes this host accept the SSH certificates of the
 * server.
 */
export interface HostScript {
  readonly url: string;
  readonly text: string;
  /** The SHA-256 of the script in hexadecimal. */
  readonly checksum: string;
}

/** The result of running the script: its exit status and its output. */
export interface HostScriptEnd {
  readonly status: number;
  /** The lines that the script printed; empty if they were shown to the user at once. */
  readonly lines: readonly string[];
}

/**
 * Fetches the script that makes this host accept the server's SSH certificates.
 *
 * @throws CliFailure if the server cannot be reached, or answers with something else
 */
export async function fetchHostScript(server: string, terminal: Terminal): Promise<HostScript> {
  const url = new URL('/install-host.sh', server).href;
  const headers = { accept: 'text/plain' };
  const answer = await send(() => Promise.resolve({ method: 'GET', url, headers }), terminal);
  const { text } = accepted(answer);
  if (!text.startsWith('#!/bin/sh\n') || !text.endsWith('\nmain "$@"\n')) {
    const whatToDo = 'Check the URL of the server: svc status';
    throw new CliFailure(`${url} is not the script of a server.`, whatToDo);
  }
  return { url, text, checksum: createHash('sha256').update(text).digest('hex') };
}

/** Returns the shell command by which root can fetch and run the script without this program. */
export function sudoLine(url: string, options: readonly string[]): string {
  const words = options.map((word) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`,
  );
  return ['curl', '-fsS', url, '|', 'sudo', 'sh', '-s', '--', ...words].join(' ');
}

/**
 * Runs the script by `sh` with options, and waits for its end.
 *
 * @param keeps true to return the output instead of showing it
 */
export function runHostScript(
  script: HostScript,
  options: readonly string[],
  keeps: boolean,
): Promise<HostScriptEnd> {
  const output = keeps ? 'pipe' : 'inherit';
  const child = spawn('sh', ['-s', '--', ...options], { stdio: ['pipe', output, output] });
  return new Promise((resolve, reject) => {
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    }
    child.once('error', (cause) =>
      reject(new CliFailure('sh cannot be run.', 'Run this on a host with sshd.', 1, { cause })),
    );
    child.once('close', (status) =>
      resolve({ status: status ?? STATUS.failed, lines: text.split('\n').filter(Boolean) }),
    );
    child.stdin?.on('error', () => {}); // a script that ends early reads no more
    child.stdin?.end(script.text);
  });
}
