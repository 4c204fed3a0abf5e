import { expect, it } from 'vitest';
import { SHELLS, shellLines } from '../src/exec/shell-lines.js';

it.each([
  ['bash', `export A='a'\\''$b\\c"'`],
  ['zsh', `export A='a'\\''$b\\c"'`],
  ['fish', `set -gx A 'a\\'$b\\\\c"'`],
  ['powershell', `$env:A = 'a''$b\\c"'`],
] as const)('quotes a value for %s', (shell, line) => {
  expect(shellLines(shell, { set: { A: `a'$b\\c"` }, unset: [] })).toEqual([line]);
});

it('doubles every quotation mark that PowerShell takes for one', () => {
  const [line] = shellLines('powershell', { set: { A: '‘’‚‛' }, unset: [] });
  expect(line).toBe("$env:A = '‘‘’’‚‚‛‛'");
});

it.each(SHELLS)('removes a variable in %s only if it is there', (shell) => {
  expect(shellLines(shell, { set: {}, unset: ['SVC_NO_SUCH_VARIABLE'] })).toEqual([]);
  expect(shellLines(shell, { set: {}, unset: ['PATH'] })).toEqual([expect.stringMatching(/PATH$/)]);
});
