import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { stepChange, type Change } from '../changes/change.js';
import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';
import { folderOf, SIGN_PROGRAM } from '../files/places.js';
import { replaceFile } from '../files/private-folder.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { SSH_FILES } from '../ssh/certificate-cache.js';

/** The entry of `config.json` that records the choice of `svc setup git --sign`. */
export const SIGN_NOTE = 'git-sign';

/** The record of `svc setup git --sign`. */
export interface SignNote {
  /** The server whose certificates sign. */
  readonly server: string;
  /** The paths of the configuration files of the repositories that were set up with `--local`. */
  readonly repositories: readonly string[];
  /** True if commits in every repository are signed, by the user's own configuration of git. */
  readonly global: boolean;
}

/** Returns the record of `svc setup git --sign`; undefined before the first setup. */
export function signNote(context: CommandContext): SignNote | undefined {
  return setupNote(context, SIGN_NOTE) as SignNote | undefined;
}

/**
 * Returns the record after a further `svc setup git --sign`, which adds its choice to the earlier
 * choices.
 *
 * @throws CliFailure with status 2 for `--local` outside of a repository
 */
export function chosenSigning(
  server: string,
  isLocal: boolean,
  before: SignNote | undefined,
): SignNote {
  const { repositories = [], global = false } = before ?? {};
  if (!isLocal) return { server, repositories, global: true };
  return { server, repositories: [...new Set([...repositories, localConfig()])], global };
}

/** Returns the path of the configuration of the repository in the working directory. */
function localConfig(): string {
  const args = ['rev-parse', '--path-format=absolute', '--git-path', 'config'];
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
  if (status === 0) return resolve(stdout.trim());
  const message = 'This folder is in no repository of git.';
  throw new CliFailure(message, 'Run it in a repository, or without --local.', STATUS.usage);
}

/** Returns the lines for a configuration of git by which it signs with the certificate. */
export function signLines(context: CommandContext, { server }: SignNote): string[] {
  const folder = folderOf(context.places.state, server);
  return [
    '[user]',
    `\tsigningKey = ${quoted(folder.file(SSH_FILES.certificate))}`,
    '[gpg]',
    '\tformat = ssh',
    '[gpg "ssh"]',
    `\tprogram = ${quoted(folder.file(SIGN_PROGRAM))}`,
    '[commit]',
    '\tgpgSign = true',
    '[tag]',
    '\tgpgSign = true',
  ];
}

/** Returns the change that writes the program which git runs to sign; none if it is the same. */
export function programChange(
  context: CommandContext,
  { server }: SignNote,
  program: string,
): Change[] {
  const path = folderOf(context.places.state, server).file(SIGN_PROGRAM);
  const text = [
    '#!/bin/sh',
    `[ "$1 $2" = '-Y sign' ] || exec ssh-keygen "$@"`,
    `exec ${word(program)} git sign --server ${word(server)} -- "$@"`,
    '',
  ].join('\n');
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return [];
  return [
    {
      description: [
        `${path}:`,
        ...text
          .trimEnd()
          .split('\n')
          .map((line) => `+${line}`),
      ],
      apply: () => {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
        replaceFile(path, text, 0o700);
      },
    },
  ];
}

/** Returns the change that removes the program which git runs to sign. */
export function programRemoval(context: CommandContext, { server }: SignNote): Change[] {
  const folder = folderOf(context.places.state, server);
  if (!existsSync(folder.file(SIGN_PROGRAM))) return [];
  return [stepChange(`remove ${folder.file(SIGN_PROGRAM)}`, () => folder.remove(SIGN_PROGRAM))];
}

/** Quotes a value for the configuration of git, in double quotation marks. */
export function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** Quotes a text as one word for the shell. */
export function word(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
