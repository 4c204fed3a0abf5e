import type { Command } from '../command/command.js';
import type { CommandWords } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';

const USAGE = 'svc completions bash|zsh|fish|powershell';

/** The options that every command understands. */
const OPTIONS = ['--server', '--json', '--help'];

/**
 * `svc completions`: prints a script by which a shell completes the words of commands, from the
 * table of commands.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'bash: svc completions bash > ~/.local/share/bash-completion/completions/svc',
    'zsh:  svc completions zsh > a file _svc in a folder of $fpath',
    'fish: svc completions fish > ~/.config/fish/completions/svc.fish',
    'PowerShell: svc completions powershell | Out-String | Invoke-Expression (in $PROFILE)',
  ],
  async run(args, { terminal, commands }) {
    const [shell] = parseArguments(args, { positionals: 1 }, USAGE).positionals;
    if (shell === 'bash') terminal.raw(bash(commands));
    else if (shell === 'zsh') terminal.raw(zsh(commands));
    else if (shell === 'fish') terminal.raw(fish(commands));
    else if (shell === 'powershell') terminal.raw(powershell(commands));
    else
      throw usageFailure(
        shell === undefined ? 'The shell is missing.' : `${shell} is not known.`,
        USAGE,
      );
  },
};

const namesOf = (commands: readonly CommandWords[]) =>
  [...commands.map(({ name }) => name), 'help'].join(' ');

/**
 * Returns the commands that can be followed by words. `help` can be followed by the name of a
 * command.
 */
const withWords = (commands: readonly CommandWords[]) => [
  ...commands.flatMap(({ name, words }) => (words ? [{ name, words: words.join(' ') }] : [])),
  { name: 'help', words: commands.map(({ name }) => name).join(' ') },
];

/** Returns the pairs of words after which a third word may follow, each with the third words. */
const withActs = (commands: readonly CommandWords[]) =>
  commands.flatMap(({ name, acts = {} }) =>
    Object.entries(acts).map(([word, words]) => ({ name, word, words })),
  );

function bash(commands: readonly CommandWords[]): string {
  const cases = withWords(commands).map(({ name, words }) => `    ${name}) words='${words}' ;;`);
  const acts = withActs(commands).map(
    ({ name, word, words }) => `      '${name} ${word}') words='${words}' ;;`,
  );
  return `# Completions of svc for bash.
_svc() {
  local word="\${COMP_WORDS[COMP_CWORD]}" words=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${namesOf(commands)}'
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "\${COMP_WORDS[1]}" in
${cases.map((line) => `  ${line}`).join('\n')}
    esac
  elif [ "$COMP_CWORD" -eq 3 ]; then
    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${acts.join('\n')}
    esac
  fi
  case "$word" in
    -*) words='${OPTIONS.join(' ')}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _svc svc
`;
}

function zsh(commands: readonly CommandWords[]): string {
  const names = commands.map(({ name, summary }) => `    '${name}:${quoted(summary)}'`);
  const cases = withWords(commands).map(
    ({ name, words }) => `      ${name}) compadd -- ${words} ;;`,
  );
  const acts = withActs(commands).map(
    ({ name, word, words }) => `      '${name} ${word}') compadd -- ${words} ;;`,
  );
  return `#compdef svc
# Completions of svc for zsh.
_svc() {
  local -a names
  names=(
${names.join('\n')}
    'help:Explains a command'
  )
  if [[ "$PREFIX" == -* ]]; then
    compadd -- ${OPTIONS.join(' ')}
  elif (( CURRENT == 2 )); then
    _describe command names
  elif (( CURRENT == 3 )); then
    case "$words[2]" in
${cases.join('\n')}
    esac
  elif (( CURRENT == 4 )); then
    case "$words[2] $words[3]" in
${acts.join('\n')}
    esac
  fi
}
if [ "$funcstack[1]" = _svc ]; then _svc "$@"; else compdef _svc svc; fi
`;
}

function fish(commands: readonly CommandWords[]): string {
  const names = commands.map(
    ({ name, summary }) =>
      `complete -c svc -n __fish_use_subcommand -f -a ${name} -d '${quoted(summary)}'`,
  );
  const words = withWords(commands).map(
    (entry) =>
      `complete -c svc -n '__fish_seen_subcommand_from ${entry.name}' -f -a '${entry.words}'`,
  );
  const acts = withActs(commands).map(
    ({ name, word, words: further }) =>
      `complete -c svc -n '__fish_seen_subcommand_from ${name}; and __fish_seen_subcommand_from ${word}' -f -a '${further}'`,
  );
  return `# Completions of svc for fish.
complete -c svc -f
${names.join('\n')}
complete -c svc -n __fish_use_subcommand -f -a help -d 'Explains a command'
${[...words, ...acts].join('\n')}
${OPTIONS.map((option) => `complete -c svc -l ${option.slice(2)}${option === '--server' ? ' -x' : ''}`).join('\n')}
`;
}

/** Returns a line of a hash table in the script for PowerShell. */
const tableRow = (key: string, words: string) => `    '${key}' = '${words}'`;

function powershell(commands: readonly CommandWords[]): string {
  const words = withWords(commands).map((entry) => tableRow(entry.name, entry.words));
  const acts = withActs(commands).map((entry) =>
    tableRow(`${entry.name} ${entry.word}`, entry.words),
  );
  return `# Completions of svc for PowerShell.
Register-ArgumentCompleter -Native -CommandName 'svc', 'svc.exe' -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @{
    '' = '${namesOf(commands)}'
${[...words, ...acts].join('\n')}
  }
  $before = @($commandAst.CommandElements | Select-Object -Skip 1 |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { "$_" })
  $found = if ($wordToComplete -like '-*') { '${OPTIONS.join(' ')}' } else { $words[$before -join ' '] }
  "$found" -split ' ' | Where-Object { $_ -ne '' -and $_.StartsWith($wordToComplete) } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`;
}

/**
 * Removes quotation marks, backslashes and colons, which have a meaning in the scripts of shells.
 */
function quoted(text: string): string {
  return text.replaceAll(/['\\:]/g, '');
}
