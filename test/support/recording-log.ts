import { Logger } from '@nestjs/common';

/** A Nest logger that prints nothing. It stores each message as a line `level message`. */
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
