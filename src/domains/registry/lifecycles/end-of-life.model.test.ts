import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Facts, graceEnd, isDay, supportStateOf } from './end-of-life.model.ts'

const line = (eolDate: string, more: Partial<NonNullable<Facts['release']>> = {}) => ({
  eolDate,
  ended: false,
  broken: false,
  ...more,
})
const april = line('2025-04-30')
const october = line('2026-10-31')
const dayless = { eolDate: '', broken: false }

type Case = readonly [
  what: string,
  facts: Partial<Facts> & { now: string },
  tagStatus: string,
  graceStatus: string,
  expiry?: string,
]

const cases: readonly Case[] = [
  ['nothing is known of it', { now: '2025-01-01T00:00:00.000Z' }, 'active', 'notEligible'],
  ['and it is not rebuilt', { now: '2025-01-01T00:00:00.000Z', rebuilt: false }, 'inactive', 'notEligible'],
  [
    'the line says no day',
    { now: '2025-01-01T00:00:00.000Z', release: { ...dayless, ended: false } },
    'active',
    'notEligible',
  ],
  [
    'it has ended on no day',
    { now: '2025-01-01T00:00:00.000Z', release: { ...dayless, ended: true } },
    'inactive',
    'notEligible',
  ],
  [
    'no day, broken',
    { now: '2025-01-01T00:00:00.000Z', release: { ...dayless, ended: true, broken: true } },
    'inactive',
    'notEligible',
  ],
  ['long before', { now: '2020-01-01T00:00:00.000Z', release: april }, 'active', 'eligible'],
  ['before, without grace', { now: '2020-01-01T00:00:00.000Z', release: april, grace: false }, 'active', 'eligible'],
  [
    'before, no longer rebuilt',
    { now: '2020-01-01T00:00:00.000Z', release: april, rebuilt: false },
    'inactive',
    'eligible',
  ],
  [
    'before, broken',
    { now: '2020-01-01T00:00:00.000Z', release: line('2025-04-30', { broken: true }) },
    'active',
    'eligible',
  ],
  [
    'the list says ended, the day is to come',
    { now: '2025-04-29T00:00:00.000Z', release: line('2025-04-30', { ended: true }) },
    'active',
    'eligible',
  ],
  ['the day before', { now: '2025-04-29T23:59:59.999Z', release: april }, 'active', 'eligible'],
  ['the moment itself', { now: '2025-04-30T00:00:00.000Z', release: april }, 'active', 'eligible'],
  [
    'a millisecond later',
    { now: '2025-04-30T00:00:00.001Z', release: april },
    'inGrace',
    'active',
    '2025-10-30T00:00:00.000Z',
  ],
  ['without grace then', { now: '2025-04-30T00:00:00.001Z', release: april, grace: false }, 'inactive', 'eligible'],
  [
    'broken then',
    { now: '2025-04-30T00:00:00.001Z', release: line('2025-04-30', { broken: true }) },
    'inactive',
    'broken',
  ],
  [
    'broken then, without grace',
    { now: '2025-04-30T00:00:00.001Z', release: line('2025-04-30', { broken: true }), grace: false },
    'inactive',
    'broken',
  ],
  [
    'in the middle',
    { now: '2025-07-01T12:00:00.000Z', release: april },
    'inGrace',
    'active',
    '2025-10-30T00:00:00.000Z',
  ],
  [
    'in the middle, no longer rebuilt',
    { now: '2025-07-01T12:00:00.000Z', release: april, rebuilt: false },
    'inGrace',
    'active',
    '2025-10-30T00:00:00.000Z',
  ],
  [
    'in the middle, neither',
    { now: '2025-07-01T12:00:00.000Z', release: april, rebuilt: false, grace: false },
    'inactive',
    'eligible',
  ],
  [
    'its last moment',
    { now: '2025-10-29T23:59:59.999Z', release: april },
    'inGrace',
    'active',
    '2025-10-30T00:00:00.000Z',
  ],
  ['the moment after', { now: '2025-10-30T00:00:00.000Z', release: april }, 'inactive', 'expired'],
  ['after, without grace', { now: '2025-10-30T00:00:00.000Z', release: april, grace: false }, 'inactive', 'expired'],
  [
    'after, broken',
    { now: '2025-10-30T00:00:00.000Z', release: line('2025-04-30', { broken: true }) },
    'inactive',
    'expired',
  ],
  ['long after', { now: '2030-01-01T00:00:00.000Z', release: april }, 'inactive', 'expired'],
  [
    'a day that the sixth month lacks: still',
    { now: '2027-04-30T23:59:59.999Z', release: october },
    'inGrace',
    'active',
    '2027-05-01T00:00:00.000Z',
  ],
  [
    'a day that the sixth month lacks: over',
    { now: '2027-05-01T00:00:00.000Z', release: october },
    'inactive',
    'expired',
  ],
  [
    'into February',
    { now: '2025-09-01T00:00:00.000Z', release: line('2025-08-31') },
    'inGrace',
    'active',
    '2026-03-03T00:00:00.000Z',
  ],
  [
    'into February of a leap year',
    { now: '2023-09-01T00:00:00.000Z', release: line('2023-08-31') },
    'inGrace',
    'active',
    '2024-03-02T00:00:00.000Z',
  ],
  [
    'on a leap day',
    { now: '2024-03-01T00:00:00.000Z', release: line('2024-02-29') },
    'inGrace',
    'active',
    '2024-08-29T00:00:00.000Z',
  ],
  [
    'over the turn of the year',
    { now: '2025-12-31T23:59:59.999Z', release: line('2025-12-31') },
    'inGrace',
    'active',
    '2026-07-01T00:00:00.000Z',
  ],
]

test('derives the status of a tag from time, release line, organization and whether it is still rebuilt', () => {
  assert.equal(cases.length, 30)
  for (const [what, given, tagStatus, graceStatus, expiry] of cases) {
    const facts = { release: undefined, grace: true, rebuilt: true, ...given }
    assert.deepEqual(supportStateOf(facts), { tagStatus, graceStatus, expiry }, what)
  }
})

test('the two grace periods in the documentation end as documented', () => {
  assert.equal(graceEnd('2026-10-31'), '2027-05-01T00:00:00.000Z')
  assert.equal(graceEnd('2025-04-30'), '2025-10-30T00:00:00.000Z')
})

test('accepts only existing calendar days', () => {
  for (const day of ['2024-02-29', '2000-01-01', '9999-12-31']) assert.ok(isDay(day), day)
  for (const day of ['2023-02-29', '2024-13-01', '2024-00-10', '2024-04-31', 'tomorrow']) assert.ok(!isDay(day), day)
})
