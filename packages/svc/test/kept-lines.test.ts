import { describe, expect, it } from 'vitest';
import { withBlock, withoutBlock, type MarkedBlock } from '../src/changes/marked-block.js';

const GIT = { keys: ['signingkey', 'gpgsign'], outlivesBlock: true };
const AWS = { keys: ['credential_process'], outlivesBlock: false };
const signing: MarkedBlock = {
  name: 'git',
  lines: ['[user]', '\tsigningKey = "k"', '[commit]', '\tgpgSign = true'],
  position: 'bottom',
  sections: GIT,
};
const profiles = (...lines: string[]): MarkedBlock => ({
  name: 'aws',
  lines,
  position: 'bottom',
  sections: AWS,
});
const EARLIER = '[profile mine]\nregion = eu-west-1\n';
const E = ['[profile e]', 'credential_process = svc e'];

describe('lines of the user in a block of sections', () => {
  it('stay in their section when the block is written again', () => {
    const once = withBlock('[user]\n\tname = Ada\n', signing);
    const own = once.replace('"k"\n', '"k"\n\temail = ada@example.com\n');
    expect(withBlock(own, signing)).toBe(own);
    const other = { ...signing, lines: signing.lines.map((line) => line.replace('"k"', '"l"')) };
    expect(withBlock(own, other)).toBe(own.replace('"k"', '"l"'));
  });

  it('stay in the file when the block is removed, or its section', () => {
    const own = withBlock(undefined, signing).replace('"k"\n', '"k"\n\temail = a@b\n\tname = A\n');
    const left = '[user]\n\temail = a@b\n\tname = A\n';
    expect(withoutBlock(own, 'git', GIT)).toEqual({ text: left, madeFolder: false });
    const next = withBlock(own, { ...signing, lines: signing.lines.slice(2) });
    expect(next).toMatch(/<<<\n\[user\]\n\temail = a@b\n\tname = A\n$/);
    expect(withoutBlock(next, 'git', GIT).text).toBe(left);
  });

  it('include those after the last section, which would fall to another profile', () => {
    const own = `${withBlock(EARLIER, profiles(...E))}output = json\ns3 =\n    x = 20\n\n# mine\n[b]\n`;
    const two = [...E, '[profile f]', 'credential_process = svc f', 'region = eu-central-1'];
    const next = withBlock(own, profiles(...two));
    expect(next).toContain(`${[...E, 'output = json', 's3 =', '    x = 20', two[2]].join('\n')}\n`);
    expect(next).toMatch(/<<<\n\n# mine\n\[b\]\n$/);
    expect(withBlock(next, profiles(...two))).toBe(next);
    expect(withoutBlock(own, 'aws', AWS).text).toBe(`${EARLIER}\n# mine\n[b]\n`);
    expect(withoutBlock(next, 'aws', AWS).text).toBe(`${EARLIER}\n# mine\n[b]\n`);
  });

  it('give way to a line of the command with the same key', () => {
    const own = `${withBlock(EARLIER, profiles(...E))}region = us-east-1\n`;
    expect(withBlock(own, profiles(...E))).toContain(`${E[1]}\nregion = us-east-1\n#`);
    const withRegion = profiles(...E, 'region = eu-central-1');
    expect(withBlock(own, withRegion)).toBe(withBlock(EARLIER, withRegion));
  });

  it('keep a line that goes on after a backslash whole', () => {
    const text = '\temail = a\\\n[not] = b\n';
    const own = withBlock('', signing).replace('"k"\n', `"k"\n${text}`);
    expect(withoutBlock(own, 'git', GIT).text).toBe(`[user]\n${text}`);
  });
});
