import { describe, expect, it } from 'vitest';
import { hostPatterns, patternEntries, sshBlock, sshPath } from '../src/ssh/config-block.js';

const HOSTS = {
  server: 'https://login.example.com',
  hosts: ['*.example.com', 'bastion'],
  identityFile: '/home/ada/.local/state/svc/login.example.com/ssh/id',
  certificateFile: '/home/ada/.local/state/svc/login.example.com/ssh/id-cert.pub',
  hostCertificates: '/home/ada/.local/state/svc/login.example.com/ssh/hosts',
};

describe('the block in ~/.ssh/config', () => {
  it('quotes the host name for the shell, and refuses the one character that could end the quotes', () => {
    const { lines } = sshBlock('/home/ada/.local/bin/svc', [HOSTS]);
    expect(lines[0]).toBe(
      `Match originalhost "*.example.com,bastion,!*'*" exec "'/home/ada/.local/bin/svc' ssh check --server 'https://login.example.com' '%n'"`,
    );
    expect(lines[4]).toBe(
      `Match host "*.example.com,bastion,!*'*" !originalhost "*.example.com,bastion,!*'*" exec "'/home/ada/.local/bin/svc' ssh check --server 'https://login.example.com' '%h'"`,
    );
    for (const [start, token] of [
      [1, '%n'],
      [5, '%h'],
    ] as const) {
      expect(lines.slice(start, start + 3)).toEqual([
        `  CertificateFile "${HOSTS.hostCertificates}/${token}.pub"`,
        `  CertificateFile "${HOSTS.certificateFile}"`,
        `  IdentityFile "${HOSTS.identityFile}"`,
      ]);
    }
  });

  it('has paths with slashes on Windows, as svc ssh HOST has', () => {
    expect(sshPath('C:\\Users\\ada\\100%.pub', 'win32')).toBe('C:/Users/ada/100%%.pub');
    expect(sshPath('/home/ada/id', 'linux')).toBe('/home/ada/id');
  });

  it('has no quotes in the command on Windows, and leaves out names with signs of cmd.exe', () => {
    const onWindows = Object.fromEntries(
      ['identityFile', 'certificateFile', 'hostCertificates'].map((name) => [
        name,
        `C:\\Users\\Ada L\\ssh\\${name}`,
      ]),
    ) as Pick<typeof HOSTS, 'identityFile' | 'certificateFile' | 'hostCertificates'>;
    const program = 'C:\\Users\\ada\\svc.exe';
    const hosts = ['*.example.com'];
    const { lines } = sshBlock(program, [{ ...HOSTS, ...onWindows, hosts }], 'win32');
    const hostile = `!*&*,!*|*,!*<*,!*>*,!*^*,!*(*,!*)*,!*%*,!*;*,!*=*,!*'*,!* *`;
    expect(lines.slice(0, 4)).toEqual([
      `Match originalhost "*.example.com,${hostile}" exec "C:\\Users\\ada\\svc.exe ssh check --server https://login.example.com %n"`,
      '  CertificateFile "C:/Users/Ada L/ssh/hostCertificates/%n.pub"',
      '  CertificateFile "C:/Users/Ada L/ssh/certificateFile"',
      '  IdentityFile "C:/Users/Ada L/ssh/identityFile"',
    ]);
    for (const path of ['C:\\Users\\Ada L\\svc.exe', 'C:\\a&b\\svc.exe', '\\\\host\\svc.exe'])
      expect(() => sshBlock(path, [HOSTS], 'win32')).toThrow(/ssh on Windows cannot run/);
  });

  it('gives a list of its own to patterns of which one leaves hosts out', () => {
    const hosts = ['db.prod.example', '*.example,!db.prod.example', 'x,!y'];
    const { lines } = sshBlock('/svc', [{ ...HOSTS, hosts }]);
    const matches = lines.filter((line) => line.startsWith('Match '));
    const [a, b, c] = ['db.prod.example', '*.example,!db.prod.example', 'x,!y'].map(
      (list) => `"${list},!*'*"`,
    );
    const notOriginal = `!originalhost ${a} !originalhost ${b} !originalhost ${c}`;
    expect(matches.map((line) => line.slice(0, line.indexOf(' exec ')))).toEqual([
      `Match originalhost ${a}`,
      `Match host ${a} ${notOriginal}`,
      `Match originalhost ${b} !originalhost ${a}`,
      `Match host ${b} !host ${a} ${notOriginal}`,
      `Match originalhost ${c} !originalhost ${a} !originalhost ${b}`,
      `Match host ${c} !host ${a} !host ${b} ${notOriginal}`,
    ]);
  });

  it('makes one entry of patterns with one that leaves hosts out, and none if no host is left', () => {
    expect(patternEntries(['a', 'b'])).toEqual(['a', 'b']);
    expect(patternEntries(['a', '!b'])).toEqual(['a,!b']);
    expect(patternEntries(['!a'])).toEqual([]);
  });

  it('keeps a percent sign of a path from being expanded', () => {
    const { lines } = sshBlock('/opt/100%/svc', [{ ...HOSTS, identityFile: '/a%h/id' }]);
    expect(lines[0]).toContain(`'/opt/100%%/svc'`);
    expect(lines[3]).toBe('  IdentityFile "/a%%h/id"');
  });

  it.each(['/a"b', "/a'b", '/a\\b', '/a$HOME', '/a\nb'])('refuses the path %j', (path) => {
    expect(() => sshBlock(path, [HOSTS])).toThrow(/cannot read the path/);
    expect(() => sshBlock('/svc', [{ ...HOSTS, identityFile: path }])).toThrow(/cannot read/);
  });
});

describe('patterns of hosts', () => {
  it('are taken one by one or with commas, each once', () => {
    expect(hostPatterns(['*.example.com,!db?.example.com', 'a', 'a'])).toEqual([
      '*.example.com',
      '!db?.example.com',
      'a',
    ]);
  });

  it.each(['', 'a b', 'a"', "a'", 'a;b', '$(id)', '-a', '%h', 'a,,b'])('refuse %j', (text) => {
    expect(() => hostPatterns([text])).toThrow(/is not a pattern/);
  });
});
