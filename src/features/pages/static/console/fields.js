// Reads the fields of a form as the members of a JSON body.
//
// data-type="number"   a number
// data-type="lines"    a list: one item for each line
// data-type="choices"  a checkbox of a list: the checked values of one name
// data-type="some"     the same, but the member is left out if no value is checked
// data-type="boolean"  true or false, of a select or a hidden field
// data-type="json"     a JSON value
// data-empty="null"    an empty field is sent as null, which resets the setting
//
// A checkbox without a type is true or false. An empty field that is not required is left out.

import { Refusal } from './api.js';

/**
 * Returns the JSON body of a form; undefined for a form without fields. @throws Refusal for a text
 * that is no JSON
 */
export function bodyOf(form) {
  const fields = [...form.elements].filter(({ name, disabled }) => name && !disabled);
  if (fields.length === 0) return undefined;
  const body = {};
  for (const field of fields) {
    if (field.type === 'radio' && !field.checked) continue;
    if (field.dataset.type === 'choices') {
      body[field.name] ??= [];
      if (field.checked) body[field.name].push(field.value);
      continue;
    }
    if (field.dataset.type === 'some') {
      if (field.checked) body[field.name] = [...(body[field.name] ?? []), field.value];
      continue;
    }
    const value = valueOf(field);
    if (value !== undefined) body[field.name] = value;
  }
  return body;
}

function valueOf(field) {
  if (field.type === 'checkbox') return field.checked;
  const text = field.value.trim();
  if (text === '' && field.dataset.empty === 'null') return null;
  if (text === '' && !field.required) return undefined;
  if (field.dataset.type === 'number') return Number(text);
  if (field.dataset.type === 'lines') return text.split(/\s*\n\s*/);
  if (field.dataset.type === 'boolean') return text === 'true';
  return field.dataset.type === 'json' ? jsonOf(field, text) : text;
}

function jsonOf(field, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(`This is not JSON: ${field.labels[0]?.textContent.trim() ?? field.name}.`);
  }
}
