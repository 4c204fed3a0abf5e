import { markup, type MarkupValue } from '@svc/markup';
import type { PlainPage } from '../loopback/plain-page.js';

/** A person whom the sign-in page offers as a button. */
export interface OfferedPerson {
  readonly email: string;
  readonly name: string;
  /** The purpose of the person in the demo, in a few words. */
  readonly role: string;
}

const TITLE = 'Demo identity provider';

/**
 * Builds the sign-in page, which asks for an e-mail address and offers people as buttons.
 * @param problem the fault of the typed address; empty at the first attempt
 */
export function signInPage(people: readonly OfferedPerson[], problem: string): PlainPage {
  return {
    title: TITLE,
    content: markup`
      <p>It stands in for your company's: it asks no password and believes any address.</p>${buttons(people)}
      <form method="post">
        <p>
          <label for="email">E-mail</label>
          <input id="email" name="email" type="email" required autofocus autocomplete="email">
        </p>
        <p role="alert">${problem}</p>
        <button type="submit">Sign in</button>
      </form>`,
  };
}

function buttons(people: readonly OfferedPerson[]): MarkupValue {
  if (people.length === 0) return '';
  const each = people.map(
    ({ email, name, role }) => markup`
        <button class="plain" name="email" value="${email}"><strong>${name}</strong>, ${role}</button>`,
  );
  return markup`
      <h2>Ready-made people</h2>
      <form method="post">${each}
      </form>
      <h2>Or any other address</h2>`;
}

/** Builds a page with one sentence. */
export function messagePage(message: string): PlainPage {
  return {
    title: TITLE,
    content: markup`
      <p role="alert">${message}</p>`,
  };
}
