import { Logger } from '@nestjs/common';

/** A log that prints nothing. It stores every line as `level message` for the test. */
export class RecordingLog extends Logger {
  readonly lines: string[] = [];

  override debug(message: unknown): void {
    this.lines.push(`debug ${String(message)}`);
  }

  override log(message: unknown): void {
    this.lines.push(`log ${String(message)}`);
  }

  override warn(message: unknown): void {
    this.lines.push(`warn ${String(message)}`);
  }

  override error(message: unknown): void {
    this.lines.push(`error ${String(message)}`);
  }
}
