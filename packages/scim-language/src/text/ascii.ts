/**
 * Lower-cases A to Z only, because names of SCIM are ASCII. Unicode lower-casing would turn the
 * Kelvin sign into `k`, and so one name into another.
 */
export function asciiLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
