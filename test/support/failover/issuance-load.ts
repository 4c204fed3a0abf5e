import { setTimeout as delay } from 'node:timers/promises';
import type { Person } from './person.js';

/**
 * Lets people request certificates, each the next one after the response. A person whose session
 * has ended logs in again.
 */
export class IssuanceLoad {
  /** The number of answers with another status than 200, by status and error code. */
  readonly refusals = new Map<string, number>();
  /** The number of times that a person's session had ended, so that the person logged in again. */
  logins = 0;
  readonly #got = new Map<string, number>();
  #isStopped = true;
  #done: Promise<unknown> = Promise.resolve();

  /** @param gap the milliseconds between two requests of a person */
  constructor(
    private readonly people: readonly Person[],
    private readonly gap = 0,
  ) {}

  /**
   * Lets people request certificates again after {@link pause}. Does nothing if they already do.
   */
  resume(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    this.#done = Promise.all(this.people.map((person) => this.#work(person)));
  }

  /** Resolves when each person has got `count` more certificates. Throws after two minutes. */
  async untilEachGot(count: number): Promise<void> {
    const goals = this.people.map(({ email }) => this.#gotBy(email) + count);
    const deadline = performance.now() + 120_000;
    while (this.people.some(({ email }, at) => this.#gotBy(email) < (goals[at] ?? 0))) {
      if (performance.now() > deadline)
        throw new Error(`no certificates: ${JSON.stringify([...this.refusals])}`);
      await delay(10);
    }
  }

  /** Lets people send no more requests, and waits for the open ones. */
  async pause(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }

  async #work(person: Person): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#request(person);
      } catch (error) {
        this.#count(`no answer: ${error instanceof Error ? error.message : String(error)}`);
        await delay(20);
      }
      if (this.gap > 0) await delay(this.gap);
    }
  }

  async #request(person: Person): Promise<void> {
    const answer = await person.requestCertificate();
    const { status, json } = answer;
    if (status === 200) {
      this.#got.set(person.email, this.#gotBy(person.email) + 1);
      return;
    }
    this.#count(`${status} ${json?.code ?? ''}`.trim());
    if (status === 401 || status === 403) {
      const login = await person.logIn();
      if (login.status === 200) this.logins += 1;
      else this.#count(`login ${login.status} ${login.json?.code ?? ''}`.trim());
    }
    await delay(20);
  }

  #gotBy(email: string): number {
    return this.#got.get(email) ?? 0;
  }

  #count(refusal: string): void {
    this.refusals.set(refusal, (this.refusals.get(refusal) ?? 0) + 1);
  }
}
