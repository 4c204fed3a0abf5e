import { isIP } from 'node:net';
import type { AuditNetwork } from '#domain/audit/audit-filter.js';

const MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i;

/** Reads an IP address or a network such as `10.1.0.0/16`; undefined for any other text. */
export function parseNetwork(text: string): AuditNetwork | undefined {
  const [, address = '', prefix] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? [];
  const plain = address.replace(MAPPED, '');
  const version = isIP(plain);
  if (version === 0) return undefined;
  const bits = version === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (length > bits) return undefined;
  return { text: `${plain}/${length}`, isOneAddress: length === bits, bits };
}
