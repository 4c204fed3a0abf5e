import { describe, expect, it } from 'vitest';
import { planCreation } from '../../../../src/domain/directory/provisioning/record-plan.js';
import { addressesOf } from '../../../../src/domain/directory/record-addresses.js';

const NAME = 'name@x.example';
const MAIL = 'mail@x.example';
const WORK = 'work@x.example';
const { has } = addressesOf(NAME, [
  { value: WORK, type: 'work' },
  { value: MAIL, primary: true },
]);
const holder = (email: string, facts: object = {}) => ({
  id: email,
  email,
  scimManaged: false,
  isTwin: false,
  isInUse: true,
  ...facts,
});
const managed = { scimManaged: true };

describe('a POST beside users who sign in with its addresses', () => {
  it('takes over the first fit of userName, primary and work; every other one is a twin', () => {
    const [name, mail, work] = [holder(NAME), holder(MAIL), holder(WORK)];
    expect(planCreation(has, [mail, name, work])).toMatchObject({
      takesOver: name,
      twins: [mail, work],
    });
    expect(planCreation(has, [work, mail])).toMatchObject({ takesOver: mail, twins: [work] });
  });

  it('takes over a twin of another record by the userName alone', () => {
    const twin = { isTwin: true };
    expect(planCreation(has, [holder(NAME, twin)]).takesOver?.email).toBe(NAME);
    const plan = planCreation(has, [holder(MAIL, twin)]);
    expect([plan.takesOver, plan.twins.length]).toEqual([undefined, 1]);
  });

  it('links to a record in use that signs in with the userName, and takes the address from an unused one', () => {
    const used = holder(NAME, managed);
    expect(planCreation(has, [used])).toMatchObject({ links: used, moves: undefined, twins: [] });
    const unused = holder(NAME, { ...managed, isInUse: false });
    expect(planCreation(has, [unused])).toMatchObject({ links: undefined, moves: unused });
  });

  it('leaves a record that signs in with a further address as it is', () => {
    const plan = planCreation(has, [holder(MAIL, managed)]);
    expect(plan).toEqual({ takesOver: undefined, twins: [], moves: undefined, links: undefined });
  });
});
