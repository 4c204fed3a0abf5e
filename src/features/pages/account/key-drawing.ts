/** The shape of a security key, as far as it decides where the key is touched. */
export type KeyForm = 'keychain' | 'compact' | 'nano' | 'lightning' | 'fingerprint' | 'unknown';

/** The drawing of a key for a page: its shape, and the place of the touch in words. */
export interface KeyDrawing {
  readonly form: KeyForm;
  readonly text: string;
}

const TEXTS: Readonly<Record<KeyForm, string>> = {
  keychain:
    'Touch the round metal contact in the middle of the key. On a phone, hold the key to its back.',
  compact:
    'Touch the metal on both edges of the key at once. On a Nano, touch the end that looks out of the port.',
  nano: 'Touch the end that looks out of the port.',
  lightning: 'Touch the metal on both edges of the key at once.',
  fingerprint: 'Lay the enrolled finger on the round sensor in the middle of the key.',
  unknown: 'Touch the metal part of the key when it blinks.',
};

/**
 * The shapes by words of the model's name, the most special first. The name is that of a series, so
 * that it does not tell every shape.
 */
const FORMS: readonly (readonly [words: RegExp, form: KeyForm])[] = [
  [/\bBio\b/, 'fingerprint'],
  [/\bLightning\b|\b5Ci\b/, 'lightning'],
  [/\bNano\b/, 'nano'],
  [/\bNFC\b|^Security Key\b/, 'keychain'],
  [/^YubiKey 5\b|\b5C\b/, 'compact'],
];

/**
 * Decides which drawing shows where a key is touched.
 *
 * @param model the name of the model; null for a key whose model is not known
 */
export function keyDrawing(model: string | null): KeyDrawing {
  const form = FORMS.find(([words]) => model !== null && words.test(model))?.[1] ?? 'unknown';
  return { form, text: TEXTS[form] };
}
