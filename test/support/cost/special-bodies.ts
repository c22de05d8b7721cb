// Bodies for SCIM and MCP, at the limits of these protocols.
import { groupSchema, patchSchema, userSchema } from '../scim.ts'
import { jsonBodies } from './bodies.ts'

const list = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

const person = (more: object): string => JSON.stringify({ schemas: [userSchema], userName: 'ada', ...more })
const patch = (operations: object[]): string => JSON.stringify({ schemas: [patchSchema], Operations: operations })

export const scimBodies: Record<string, () => string> = {
  'as many values as a person has': () => person({ values: list(1900, (at) => at) }),
  'as many members as a person has': () => person(Object.fromEntries(list(1900, (at) => [at.toString(36), 0]))),
  'a long name': () => person({ userName: 'a'.repeat(250_000) }),
  'a long search': () =>
    JSON.stringify({
      filter: list(5, (at) => `emails.value co "${at}"`).join(' or '),
      attributes: list(30, (at) => `emails.${at}`),
    }),
  'many operations': () => patch(list(100, () => ({ op: 'add', path: 'emails[type eq "work"].value', value: 'a' }))),
  'operations on long values': () =>
    patch([
      { op: 'add', path: 'emails', value: list(900, (at) => ({ type: `${at}`.padEnd(200, 'a') })) },
      ...list(99, (at) => ({ op: 'replace', path: `emails[type eq "${at}"].value`, value: 'a' })),
    ]),
  'additions to a long list': () =>
    patch([
      { op: 'add', path: 'emails', value: list(900, (at) => `${at}`.padEnd(200, 'a')) },
      ...list(99, (at) => ({ op: 'add', path: 'emails', value: [`b${at}`] })),
    ]),
  'a long path': () => patch(list(100, () => ({ op: 'add', path: `emails[type eq "${'\\'.repeat(480)}`, value: 'a' }))),
}

const team = (more: object): string => JSON.stringify({ schemas: [groupSchema], displayName: 'team', ...more })
/** Well-formed id of a user that does not exist. */
const idOf = (at: number): string => `00000000-0000-4000-8000-${at.toString(16).padStart(12, '0')}`
const members = (count: number): object[] => list(count, (at) => ({ value: idOf(at) }))
const ofMember = (at: number): string => `members[value eq "${idOf(at)}"]`

/** A request for a group contains more values than one for a user, since it lists the members. */
export const scimGroupBodies: Record<string, () => string> = {
  'as many values as a group has': () => team({ values: list(9900, (at) => at) }),
  'as many attributes as a group has': () => team(Object.fromEntries(list(9900, (at) => [at.toString(36), 0]))),
  'a long name': () => team({ displayName: 'a'.repeat(250_000) }),
  'as many members as a request names': () => team({ members: members(1000) }),
  'too many members': () => team({ members: members(4900) }),
  'a member many times': () => team({ members: list(1000, () => members(1)[0]) }),
  'members with long ids': () => team({ members: list(1000, (at) => ({ value: `${at}`.padEnd(200, 'a') })) }),
  'a long search': () =>
    JSON.stringify({
      filter: list(5, (at) => `members.value eq "${at}"`).join(' or '),
      attributes: list(30, (at) => `members.${at}`),
    }),
  'operations on many members': () =>
    patch(list(100, (at) => ({ op: at % 2 ? 'remove' : 'add', path: 'members', value: members(10) }))),
  'removals of single members': () => patch(list(100, (at) => ({ op: 'remove', path: ofMember(at) }))),
  'one addition of many members': () => patch([{ op: 'add', path: 'members', value: members(1000) }]),
  'operations on attributes': () =>
    patch([
      { op: 'add', path: 'labels', value: list(900, (at) => ({ type: `${at}`.padEnd(200, 'a') })) },
      ...list(99, (at) => ({ op: 'replace', path: `labels[type eq "${at}"].value`, value: 'a' })),
    ]),
  'a long path': () =>
    patch(list(100, () => ({ op: 'remove', path: `members[value eq "${'\\'.repeat(480)}`, value: 'a' }))),
}

const call = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

export const mcpBodies: Record<string, () => string> = {
  ...jsonBodies,
  initialize: () =>
    call('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'a', version: 'b'.repeat(4_000_000) },
    }),
  ping: () => call('ping', { pad: 'a'.repeat(4_000_000) }),
  'server/discover': () => call('server/discover', { pad: 'a'.repeat(4_000_000) }),
  'tools/list': () => call('tools/list', { pad: 'a'.repeat(4_000_000) }),
  notification: () =>
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { pad: 'a'.repeat(4_000_000) } }),
  'an unknown tool': () => call('tools/call', { name: 'a'.repeat(4_000_000), arguments: {} }),
  'a tool with a long text': () =>
    call('tools/call', { name: 'list_groups', arguments: { name: 'a'.repeat(4_000_000) } }),
  'a tool with many members': () =>
    call('tools/call', {
      name: 'list_groups',
      arguments: Object.fromEntries(list(19_900, (at) => [at.toString(36), 0])),
    }),
  'a tool with many elements': () =>
    call('tools/call', { name: 'list_groups', arguments: { names: list(19_900, () => 'a') } }),
}
