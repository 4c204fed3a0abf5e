import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Returns the local TCP ports of the IPv4 connections of some processes. A relay on loopback sees
 * only the port of its client, so the ports tell which process made a connection.
 */
export function portsOf(pids: readonly number[]): Set<number> {
  const inodes = new Set(pids.flatMap(socketsOf));
  const [, ...lines] = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n');
  const ports = new Set<number>();
  for (const line of lines) {
    const [, local = '', , , , , , , , inode = ''] = line.trim().split(/\s+/);
    if (inodes.has(inode)) ports.add(Number.parseInt(local.split(':')[1] ?? '', 16));
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
