import { spawn } from 'node:child_process';
import { takeFromAgents } from '../agent/agents.js';
import type { CommandContext } from '../command/command-context.js';
import { CliFailure } from '../program/failure.js';
import { fetchPlain } from '../server/transport.js';
import { ownCommand } from '../files/own-program.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { certificateIn, SSH_FILES } from './certificate-cache.js';
import { setsIn } from './host-certificate.js';

/**
 * The longest wait for the answer of the server in milliseconds. It is short, because a program
 * that reads the messages of `ssh` also waits for this process.
 */
const PATIENCE = 1_000;

/**
 * Starts a process that asks the server if it has revoked the stored certificate. An SSH login does
 * not wait for that process, and so never waits for the network. The process writes at most one
 * line to the standard error of `ssh`.
 */
export function startRevocationCheck(server: string): void {
  const [program, ...args] = ownCommand();
  const child = spawn(program, [...args, 'ssh', 'recheck', '--server', server], {
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  child.on('error', () => undefined); // The login goes on; the next login tries again.
  child.unref();
}

/**
 * Removes each stored certificate that the server has revoked, from agents too, and says so in one
 * line. Without a clear answer of the server, nothing is removed.
 */
export async function recheck(context: CommandContext): Promise<void> {
  const server = context.server();
  const folder = context.folder(server);
  const files = [SSH_FILES.certificate, ...setsIn(folder)];
  const removed = await Promise.all(files.map((file) => recheckFile(server, folder, file)));
  if (!removed.includes(true)) return;
  takeFromAgents(folder);
  const { host } = new URL(server);
  context.terminal.warn(
    `svc: ${host} has revoked your SSH certificate: your login has ended or your access was removed; run: svc login`,
  );
}

/** Removes a certificate if the server has revoked it. Returns true if it was removed. */
async function recheckFile(server: string, folder: PrivateFolder, file: string): Promise<boolean> {
  const read = () => certificateIn(folder.read(file) ?? '');
  const certificate = read();
  if (!certificate || !(await isRevoked(server, certificate.serial.toString()))) return false;
  return folder.withLock('ssh', async () => {
    // A new login can have replaced the certificate meanwhile.
    const isSame = read()?.serial === certificate.serial;
    if (isSame) folder.remove(file);
    return isSame;
  });
}

async function isRevoked(server: string, serial: string): Promise<boolean> {
  try {
    const { status, text } = await fetchPlain(
      `${server}/v1/credentials/ssh/krl/${serial}`,
      PATIENCE,
    );
    return status === 200 && (JSON.parse(text) as { revoked?: unknown }).revoked === true;
  } catch (error) {
    if (error instanceof CliFailure || error instanceof SyntaxError) return false;
    throw error;
  }
}
