// Policy of a verifier: the logs that it trusts, and the witnesses that must have signed their checkpoints
// (c2sp.org/tlog-policy).
import { type NoteKey, parseVkey } from './notes.ts'

/** Required signatures: none, that of one witness, or those of a minimum number of members of a group. */
type Quorum = { is: 'none' } | { is: 'witness'; key: NoteKey } | { is: 'group'; least: number; members: Quorum[] }
export type Policy = { logs: NoteKey[]; witnesses: NoteKey[]; quorum: Quorum }

/** Error in a policy, with the line. */
export class PolicyError extends Error {
  override name = 'PolicyError'
}

const mostLines = 1000

/** Parses a policy. Throws PolicyError with the line of an error. */
export function parsePolicy(text: string): Policy {
  const named = new Map<string, Quorum>()
  const policy: { logs: NoteKey[]; witnesses: NoteKey[]; quorum: Quorum | undefined } = {
    logs: [],
    witnesses: [],
    quorum: undefined,
  }
  const members = new Set<string>()
  const lines = text.split('\n')
  if (lines.length > mostLines) throw new PolicyError(`the policy has more than ${mostLines} lines`)
  for (const [i, line] of lines.entries()) {
    const fail = (why: string): never => {
      throw new PolicyError(`line ${i + 1} of the policy ${why}`)
    }
    const [word, ...rest] = line.split(/[ \t]+/).filter((part) => part !== '')
    if (word === undefined || word.startsWith('#')) continue
    if (/[^\t\x20-\x7e\u0080-\uffff]/.test(line)) fail('has a control character')
    const define = (name: string | undefined, what: Quorum): void => {
      if (name === undefined || name === 'none' || named.has(name)) fail('needs a name that no other line uses')
      named.set(name!, what)
    }
    const find = (name: string): Quorum => named.get(name) ?? fail(`names ${name}, which no earlier line defines`)
    if (word === 'log') {
      if (rest.length < 1 || rest.length > 2) fail('must be "log KEY [URL]"')
      policy.logs.push(keyOf(rest[0]!, 'log', policy.logs) ?? fail('needs an Ed25519 log key that no other line has'))
    } else if (word === 'witness') {
      if (rest.length < 2 || rest.length > 3) fail('must be "witness NAME KEY [URL]"')
      const key = keyOf(rest[1]!, 'witness', policy.witnesses)
      if (!key) return fail('needs an Ed25519 witness key that no other line has')
      policy.witnesses.push(key)
      define(rest[0], { is: 'witness', key })
    } else if (word === 'group') {
      const [name, count, ...names] = rest
      if (names.length === 0) fail('must be "group NAME all|any|COUNT MEMBER…"')
      for (const one of names) if (members.size === members.add(one).size) fail(`lists ${one} twice`)
      const least = count === 'all' ? names.length : count === 'any' ? 1 : /^[1-9]\d*$/.test(count!) ? Number(count) : 0
      if (least < 1 || least > names.length) fail('must have a count from 1 to the number of its members')
      define(name, { is: 'group', least, members: names.map(find) })
    } else if (word === 'quorum') {
      if (rest.length !== 1 || policy.quorum) fail('must be "quorum NAME", and there must be only one such line')
      policy.quorum = rest[0] === 'none' ? { is: 'none' } : find(rest[0]!)
    } else fail(`begins with ${word}; it must begin with log, witness, group or quorum`)
  }
  if (!policy.quorum) throw new PolicyError('the policy has no quorum line')
  return { ...policy, quorum: policy.quorum }
}

function keyOf(text: string, kind: NoteKey['kind'], taken: readonly NoteKey[]): NoteKey | undefined {
  const key = parseVkey(text)
  return key?.kind === kind && !taken.some(({ publicKey }) => publicKey.equals(key.publicKey)) ? key : undefined
}

/** True if enough witnesses have signed the checkpoint. */
export function isWitnessed(quorum: Quorum, hasSigned: (key: NoteKey) => boolean): boolean {
  if (quorum.is === 'none') return true
  if (quorum.is === 'witness') return hasSigned(quorum.key)
  return quorum.members.filter((one) => isWitnessed(one, hasSigned)).length >= quorum.least
}
