/** The width at which the lines of a document wrap. */
const WIDTH = 100;

/** Returns an item of a Markdown list, wrapped between words. */
export function listItem(text: string): string {
  const lines: string[] = [];
  let line = '-';
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = ' ';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}
