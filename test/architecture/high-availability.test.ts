import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULTS, leaderSection, memberSections } from '../support/high-availability/haproxy.js';
import {
  PARAMETERS,
  PATRONI_TIMES,
  SYNCHRONOUS_STANDBYS,
  wakingScript,
} from '../support/high-availability/patroni-node.js';

const PAGE = new URL('../../docs/operations/high-availability.md', import.meta.url);
const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```\w*\n(.*?)^```/gms)].map(
  ([, text]) => text ?? '',
);
const blockWith = (text: string) => blocks.find((block) => block.includes(text)) ?? '';

/**
 * The nodes that the page describes. The measured cluster has ports of loopback in place of their
 * addresses.
 */
const NODES = ['a', 'b', 'c'].map((name, index) => ({ name, host: `10.0.0.${index + 1}` }));

/** Replaces each address on loopback by the address that the page gives to the same node. */
function onPage(section: string, port: number): string {
  return NODES.reduce(
    (text, { host }, index) => text.replaceAll(`127.0.0.1:${1000 + index}`, `${host}:${port}`),
    section,
  );
}

describe('the page about high availability', () => {
  it('has the HAProxy before PostgreSQL with which the faults are measured', () => {
    const backends = NODES.map(({ name }, index) => ({
      name,
      port: 1000 + index,
      checkPort: 8008,
    }));
    const measured = onPage(leaderSection(5000, backends), 5432);
    expect(blockWith('listen leader')).toBe(`${DEFAULTS}${measured}`);
  });

  it('has the HAProxy between the nodes with which the faults are measured', () => {
    const members = NODES.map(({ name }, index) => ({
      name,
      bindPort: 8101 + index,
      port: 1000 + index,
    }));
    expect(blockWith('listen patroni-a')).toBe(onPage(memberSections(members), 8008));
  });

  it('has the script with which the new leader of a measured cluster wakes the other nodes', () => {
    expect(blockWith('#!/bin/sh')).toBe(wakingScript([8101, 8102, 8103]));
    expect(blockWith('bootstrap:')).toContain('on_role_change: sh /etc/patroni/wake-others');
  });

  it('has the settings of Patroni and PostgreSQL with which the faults are measured', () => {
    const lines = blockWith('bootstrap:')
      .split('\n')
      .map((line) => line.trim());
    for (const [name, value] of Object.entries(PATRONI_TIMES))
      expect(lines).toContain(`${name}: ${value}`);
    expect(lines).toContain(`synchronous_node_count: ${SYNCHRONOUS_STANDBYS}`);
    const timeouts = Object.entries(PARAMETERS).filter(([name]) =>
      /^wal_(retrieve|sender|receiver)/.test(name),
    );
    expect(timeouts).toHaveLength(3);
    for (const [name, value] of timeouts) expect(lines).toContain(`${name}: ${value}`);
  });
});
