import type { Request, Response } from 'express';
import { clientAddressOf } from '#platform/http/request/client-origin.js';

/**
 * The largest number of downloads that may run at the same time, for all clients together and for
 * one client IP address.
 */
const MOST = { inAll: 64, forOne: 8 } as const;

/** Counts the downloads that run, so that slow clients cannot keep files of the disk open. */
export class DownloadSlots {
  readonly #ofAddress = new Map<string, number>();
  #inAll = 0;

  /**
   * Takes a slot until the response ends or the connection closes. Several requests can wait on one
   * connection. If the connection closes, Node ends only the first of their responses, so this
   * function ends the others.
   *
   * @returns false if no slot is free for the client, or the connection has ended already
   */
  take(request: Request, response: Response): boolean {
    const address = clientAddressOf(request) ?? '';
    const own = this.#ofAddress.get(address) ?? 0;
    const { socket } = request;
    if (this.#inAll >= MOST.inAll || own >= MOST.forOne || socket.destroyed) return false;
    this.#inAll += 1;
    this.#ofAddress.set(address, own + 1);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      socket.off('close', endWithConnection);
      this.#release(address);
    };
    const endWithConnection = () => {
      release();
      response.destroy();
    };
    response.once('close', release);
    socket.once('close', endWithConnection);
    return true;
  }

  #release(address: string): void {
    this.#inAll -= 1;
    const left = (this.#ofAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#ofAddress.delete(address);
    else this.#ofAddress.set(address, left);
  }
}
