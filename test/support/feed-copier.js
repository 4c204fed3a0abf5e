// A script for runScript. It copies the feed of the audit log into a file, after the last complete
// line that the file already has. It writes small pieces. After `most` bytes it waits until it is
// killed.
import { once } from 'node:events';
import { appendFileSync, readFileSync, truncateSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

/**
 * The number of bytes in one write. Most lines are longer, so a kill usually leaves an incomplete
 * line.
 */
const PIECE = 97;

const { url, file, headers, most = Number.POSITIVE_INFINITY } = JSON.parse(process.argv[2]);
const copied = readFileSync(file, 'utf8');
const whole = copied.slice(0, copied.lastIndexOf('\n') + 1);
truncateSync(file, Buffer.byteLength(whole));
const last = whole.trimEnd().split('\n').at(-1);
const after = last === '' ? '' : `&after=${JSON.parse(last).cursor}`;
const answer = await fetch(`${url}&format=ndjson${after}`, { headers });
process.stdout.write(`${JSON.stringify({ status: answer.status })}\n`);
let copiedNow = 0;
for await (const chunk of answer.body) {
  for (let at = 0; at < chunk.length; at += PIECE) {
    const piece = chunk.subarray(at, at + PIECE);
    appendFileSync(file, piece);
    copiedNow += piece.length;
    if (copiedNow < most) await setImmediate();
    else await once(process.stdin.resume(), 'end');
  }
}
