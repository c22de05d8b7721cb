// Fuzz targets for SCIM requests of identity providers.
import { ScimError } from '#scim/errors.ts'
import { groupFilters, readFilter } from '#scim/filter.ts'
import { readGroupPatch } from '#scim/group-resource.ts'
import { readPatch } from '#scim/patch.ts'
import { oneOf, type Random } from '../support/random.ts'
import { mutate } from './mutate.ts'

const user = 'urn:ietf:params:scim:schemas:core:2.0:User'
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const filters = [
  'userName eq "jo@acme.example"',
  `externalId eq "a\\"b" and ${user}:userName eq "x" AND id eq "1"`,
  'userName eq "\\u0061"',
  `emails[type eq "work" and value co "@acme.example"] or not (active eq "False") and ${user}:meta.created gt "2026-11-29T08:00:00Z"`,
]
const groupFilterTexts = ['id eq "1" and members eq "2"', 'members[value eq "1"] or not (displayName co "x")']
const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
const patches = [
  { schemas, Operations: [{ op: 'Replace', path: 'active', value: 'False' }] },
  { schemas, Operations: [{ op: 'add', path: 'emails[type eq "work"].value', value: 'jo@acme.example' }] },
  {
    schemas,
    Operations: [{ op: 'replace', value: { active: false, 'name.givenName': 'Jo', [enterprise]: { manager: 'x' } } }],
  },
  {
    schemas,
    Operations: [
      { op: 'remove', path: `${enterprise}:manager.value` },
      { op: 'add', path: 'title', value: 'y' },
    ],
  },
  {
    schemas,
    Operations: [{ op: 'replace', value: { [user]: { active: null, [`${enterprise}:manager`]: { value: '4' } } } }],
  },
  { schemas, Operations: [{ op: 'remove', path: 'active' }] },
].map((body) => JSON.stringify(body))
const groupPatches = [
  { schemas, Operations: [{ op: 'Remove', path: 'members', value: [{ $ref: null, value: '1' }] }] },
  { schemas, Operations: [{ op: 'remove', path: 'members[value eq "1"]' }] },
  { schemas, Operations: [{ op: 'replace', value: { id: 'id', displayName: 'x', members: [{ value: '1' }] } }] },
].map((body) => JSON.stringify(body))
const before = {
  schemas: [user],
  userName: 'jo@acme.example',
  active: true,
  emails: [{ type: 'work', primary: true, value: 'a@b.example' }],
}

/** Errors of a request must have the form of SCIM errors. */
function refusing<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ScimError && error.status < 500) return undefined
    throw error
  }
}

export const provisioningTargets: Record<string, (random: Random) => unknown> = {
  'SCIM filter': (random) => refusing(() => readFilter(mutate(random, oneOf(random, filters)))),
  'SCIM patch'(random) {
    const text = mutate(random, oneOf(random, patches))
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch {
      return undefined
    }
    const kept = JSON.stringify(before)
    const after = refusing(() => readPatch(body)(before as never, 'id'))
    if (after && !('active' in after)) throw new Error('active was removed')
    if (JSON.stringify(before) !== kept) throw new Error('what is stored was changed in place')
    if (Object.hasOwn(Object.prototype, 'active')) throw new Error('the prototype of all objects was changed')
    return after
  },
  'SCIM group filter': (random) =>
    refusing(() => readFilter(mutate(random, oneOf(random, groupFilterTexts)), groupFilters)),
  'SCIM group patch'(random) {
    let body: unknown
    try {
      body = JSON.parse(mutate(random, oneOf(random, groupPatches)))
    } catch {
      return undefined
    }
    const group = { displayName: 'group' }
    const after = refusing(() => readGroupPatch(body).apply(group, 'id'))
    if (after?.displayName.trim() === '') throw new Error('the display name was removed')
    if (JSON.stringify(group) !== '{"displayName":"group"}') throw new Error('what is stored was changed in place')
    return after
  },
}
