import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** The folder of the guides. */
export const GUIDES = resolve(import.meta.dirname, '../../docs/guides');

/** A fenced block of code in a guide. */
export interface GuideBlock {
  /** The path of the guide below docs/guides. */
  readonly page: string;
  readonly line: number;
  readonly language: string;
  /**
   * The name of the test file without folder and suffix, from the first line of the block. In
   * `test=backup:dump`, it is `backup`, and `dump` is the name of the block.
   */
  readonly test: string | undefined;
  readonly name: string | undefined;
  /** True if the block's section begins with {@link EXCUSE}, so that no test runs its blocks. */
  readonly isExcused: boolean;
  readonly text: string;
}

/** Matches the words with which a section without a test must begin, followed by the reason. */
export const EXCUSE = /^Not run in CI: \S+ \S+/;

/** Returns the fenced code blocks of a page. */
export function blocksOf(page: string, markdown: string): GuideBlock[] {
  const blocks: GuideBlock[] = [];
  /**
   * The sections around the present line, the outermost first. `isExcused` is undefined until the
   * first line of a section is read.
   */
  let sections: { depth: number; isExcused: boolean | undefined }[] = [];
  let open: { line: number; indent: string; info: string; lines: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    const [, indent = '', fence, info = ''] = /^(\s*)(```)(.*)$/.exec(line) ?? [];
    if (open && fence !== undefined) {
      const isExcused = sections.some((section) => section.isExcused === true);
      blocks.push(asBlock(page, open, isExcused));
      open = undefined;
    } else if (open)
      open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
    else if (fence !== undefined) open = { line: index + 1, indent, info, lines: [] };
    else if (/^#+ /.test(line)) {
      const depth = line.indexOf(' ');
      sections = [
        ...sections.filter((section) => section.depth < depth),
        { depth, isExcused: undefined },
      ];
    } else if (line.trim() !== '') {
      const section = sections.at(-1);
      if (section) section.isExcused ??= EXCUSE.test(line);
    }
  }
  if (open) throw new Error(`${page}:${open.line}: the block does not end`);
  return blocks;
}

function asBlock(
  page: string,
  { line, info, lines }: { line: number; info: string; lines: string[] },
  isExcused: boolean,
): GuideBlock {
  const [language = '', ...words] = info.trim().split(/\s+/);
  const [, test, name] = /^test=([\w-]+):([\w-]+)$/.exec(words.join(' ')) ?? [];
  return { page, line, language, test, name, isExcused, text: `${lines.join('\n')}\n` };
}

/**
 * Returns the text of the block with a name on a page.
 *
 * @param replacements texts of the block, each with the text that replaces it, such as a port, a
 * path or an account. The block must contain each of them. The public URL of the service needs no
 * replacement, because `PublicName` leads it to the test.
 */
export function guideBlock(
  page: string,
  name: string,
  replacements: Readonly<Record<string, string>> = {},
): string {
  const blocks = blocksOf(page, readFileSync(resolve(GUIDES, page), 'utf8'));
  const found = blocks.filter((block) => block.name === name);
  const [block] = found;
  if (!block || found.length > 1) throw new Error(`${page} has ${found.length} blocks ${name}`);
  return Object.entries(replacements).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${page}: the block ${name} does not have ${from}`);
    return text.replaceAll(from, to);
  }, block.text);
}

/** The result of the commands in a block. */
export interface CommandsEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs commands in bash, which stops at the first command that fails. They get the given
 * environment variables and the host's PATH, but no other variable of the host.
 */
export async function runCommands(
  commands: string,
  options: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly uid?: number;
    readonly gid?: number;
  } = {},
): Promise<CommandsEnd> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    ...options,
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`, LANG: 'C.UTF-8', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (written.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, ...written };
}

/**
 * Runs commands that must all succeed.
 * @returns their standard output
 */
export async function runToSuccess(...args: Parameters<typeof runCommands>): Promise<string> {
  const { status, stdout, stderr } = await runCommands(...args);
  if (status !== 0) throw new Error(`status ${status} of\n${args[0]}\n${stdout}${stderr}`);
  return stdout;
}
