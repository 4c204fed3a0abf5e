import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Matches a line of /proc/net/tcp. The groups are the local port (hexadecimal) and the inode of a
 * socket.
 */
const CONNECTION = /^ *\d+: [\dA-F]+:([\dA-F]+) \S+ \S+ \S+ \S+ \S+ +\d+ +\d+ ([1-9]\d*)/gm;

/**
 * Returns the local ports of the IPv4 connections of some processes. A relay on loopback sees only
 * the port of a client, and this function finds out if the client is one of these processes. It
 * takes tens of milliseconds, because it reads all connections of the machine.
 */
export function portsOf(pids: readonly number[]): Set<number> {
  const inodes = new Set(pids.flatMap(socketsOf));
  const ports = new Set<number>();
  for (const [, port = '', inode = ''] of readFileSync('/proc/net/tcp', 'utf8').matchAll(
    CONNECTION,
  )) {
    if (inodes.has(inode)) ports.add(Number.parseInt(port, 16));
  }
  return ports;
}

function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => socketOf(pid, fd));
  } catch {
    return []; // the process has ended meanwhile
  }
}

function socketOf(pid: number, fd: string): string[] {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
    return inode === undefined ? [] : [inode];
  } catch {
    return []; // the file was closed meanwhile
  }
}
