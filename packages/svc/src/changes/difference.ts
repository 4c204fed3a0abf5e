/**
 * Describes the change of a text as a unified difference. Lines before the first change and after
 * the last change are not shown, because they may contain secrets of the user. All lines between
 * these two changes are shown as removed and added.
 *
 * @param name the path of the file as the user knows it
 */
export function difference(
  name: string,
  before: string | undefined,
  after: string | undefined,
): string[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const removed = old.slice(head, old.length - tail);
  const added = now.slice(head, now.length - tail);
  return [
    `--- ${before === undefined ? '(no file)' : name}`,
    `+++ ${after === undefined ? '(no file)' : name}`,
    `@@ ${range('-', head, removed)} ${range('+', head, added)} @@`,
    ...removed.map((line) => `-${visible(line)}`),
    ...added.map((line) => `+${visible(line)}`),
  ];
}

function linesOf(text: string | undefined): string[] {
  if (text === undefined || text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function range(sign: string, head: number, lines: readonly string[]): string {
  return `${sign}${lines.length === 0 ? head : head + 1},${lines.length}`;
}

/** Replaces the control characters of a line, because they could change what the terminal shows. */
function visible(line: string): string {
  // oxlint-disable-next-line no-control-regex
  return line.replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, '\ufffd');
}
