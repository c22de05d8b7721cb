// Sentences about audit entries: actor, action, resource and details, with names instead of uids.
import { type AuditEntry, type EntryNames, parseNames } from '#domains/outbox/audit.model.ts'
import { isUid, lineage, operatorUid, parentOf, top } from '#lib/uid.ts'
import { type AuditArea, type EntryBody, type Template, templates } from './audit-templates.model.ts'

export type SentencePart = { text: string; value: boolean; uid: string; removed: boolean }
/** Entry with the sentence about it. */
export type DescribedEntry = AuditEntry & { sentence: readonly SentencePart[] }

export type AuditAction = { type: string; title: string; area: AuditArea }

/** Template for the entries of a type. Undefined for an unknown type. */
function templateOf(type: string): Template | undefined {
  const name = type.replace(/^dev\.[a-z]+\.(?:api\.)?/, '').replace(/\.v1$/, '')
  return Object.hasOwn(templates, name) ? templates[name] : undefined
}

/** Title of the action of an entry. For an unknown type, the type. */
export function titleOf(type: string): string {
  return templateOf(type)?.title ?? type
}

/**
 * Sentence about an entry. `present` has the names that resources have now. Resources without a present name are marked as
 * removed. The names of the entry itself are used first, since they were valid at its time.
 */
export function sentenceOf(entry: AuditEntry, present: EntryNames): SentencePart[] {
  const names = { ...present, ...parseNames(entry.names) }
  const body = bodyOf(entry)
  const predicate = templateOf(entry.type)?.predicate ?? `caused the event ${entry.type}`
  const text = typeof predicate === 'string' ? predicate : predicate(body)
  const about = { names, present, body, entry }
  return merged([actorPart(about), plain(' '), ...fill(text, about)])
}

type About = { names: EntryNames; present: EntryNames; body: EntryBody; entry: AuditEntry }

const plain = (text: string): SentencePart => ({ text, value: false, uid: '', removed: false })

function actorPart({ names, present, entry: { actor, remoteAddress } }: About): SentencePart {
  if (actor === '') return plain(remoteAddress === '' ? 'The server' : 'A client without sign-in')
  if (actor === operatorUid) return { ...plain('The operator'), value: true, uid: actor }
  const [kind, name] = names[actor] ?? []
  if (kind !== undefined) return named(actor, name!, present)
  // The uid of a push token is below the uid of its owner.
  const owner = parentOf(actor) === operatorUid ? 'the operator' : names[parentOf(actor)]?.[1]
  return owner === undefined
    ? { ...plain('A removed identity'), value: true, uid: actor, removed: true }
    : { ...plain(`A token of ${owner}`), value: true, uid: actor }
}

function named(uid: string, name: string, present: EntryNames): SentencePart {
  const removed = present[uid] === undefined && uid !== operatorUid
  return { text: removed ? `${name} (removed)` : name, value: true, uid, removed }
}

/** Body with the members of the former resource. */
function bodyOf({ body, former }: AuditEntry): EntryBody {
  return { ...parsed(former), ...parsed(body) }
}

/** Other names of members, as in version 1. */
const formerNames: Readonly<Record<string, string>> = {
  identity: 'identity_uid',
  role: 'role_uid',
  repo_id: 'repo_uid',
  identity_provider_id: 'identity_provider_uid',
  identity_provider_uidp: 'identity_provider_uid',
  role_uidp: 'role_uid',
  expiration: 'expiration_time',
}

function parsed(json: string): EntryBody {
  const value: unknown = json === '' ? {} : JSON.parse(json)
  if (typeof value !== 'object' || value === null) return {}
  return renamed(value as Record<string, unknown>)
}

function renamed(value: Record<string, unknown>): Record<string, unknown> {
  const more = Object.entries(formerNames).flatMap(([old, name]) => {
    return old in value && (value[name] ?? '') === '' ? [[name, uidIn(value[old])] as const] : []
  })
  return { ...value, ...Object.fromEntries(more) }
}

/** Some members have a resource instead of its uid. */
function uidIn(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  return 'uid' in value ? value.uid : 'id' in value ? value.id : value
}

/** Fills a predicate. Text in brackets is left out if one of its values is missing. */
function fill(text: string, about: About): SentencePart[] {
  return text.split(/(\[[^[\]]*\])/).flatMap((piece) => {
    const isOptional = piece.startsWith('[')
    const filled = fillValues(isOptional ? piece.slice(1, -1) : piece, about, isOptional)
    return isOptional && filled.includes(undefined) ? [] : filled.filter((one) => one !== undefined)
  })
}

function fillValues(text: string, about: About, isOptional: boolean): (SentencePart | undefined)[] {
  return text.split(/(\{[^{}]*\})/).flatMap((piece) => {
    if (!piece.startsWith('{')) return piece === '' ? [] : [plain(piece)]
    const [path = '', fallback] = piece.slice(1, -1).split('|')
    const parts = valueParts(path, about)
    if (parts.length === 0 && path === 'group') return isOptional ? [undefined] : [plain('the server')]
    if (parts.length > 0) return parts
    return fallback === undefined ? [undefined] : [plain(fallback)]
  })
}

function valueParts(path: string, about: About): SentencePart[] {
  if (path === 'resource') return resourceParts(about)
  if (path === 'group') return scopeParts(about)
  return shownParts(valueAt(about.body, path.split('.')), about)
}

/** Repository that the resource of the entry belongs to, or else the group of the entry. */
function scopeParts(about: About): SentencePart[] {
  const [scope, group] = [parentOf(about.entry.subject), parentOf(about.entry.uid)]
  if (about.names[scope]?.[0] === 'repository') return pathParts(scope, about)
  return group === top ? [] : pathParts(group, about)
}

/** Resource of the entry: by its name, or as its body or its former body names it. */
function resourceParts(about: About): SentencePart[] {
  const { entry, body, names, present } = about
  const known = shownParts(entry.subject, about)
  if (known.length > 0) return known
  const own = [body.name, body.email, body.sink, body.domain].find((one) => typeof one === 'string' && one !== '')
  if (own === undefined) return []
  // The path of a deleted folder ends with its own name.
  const parent = parentOf(entry.subject)
  const isFolder = names[parent]?.[0] === 'group' && entry.type.includes('.group.')
  const above = isFolder ? `${pathParts(parent, about)[0]?.text ?? ''}/` : ''
  return [{ ...named(entry.subject, `${above}${String(own)}`, present), uid: entry.subject }]
}

/** Most values of a list that are shown. */
const maxShown = 5

function shownParts(value: unknown, about: About): SentencePart[] {
  if (Array.isArray(value)) {
    const all = value.map((one) => shownParts(one, about)).filter((parts) => parts.length > 0)
    const unique = [...new Map(all.map((parts) => [JSON.stringify(parts), parts])).values()]
    const shown = unique.slice(0, maxShown).flatMap((parts, i) => (i === 0 ? parts : [plain(', '), ...parts]))
    return unique.length > maxShown ? [...shown, plain(` and ${unique.length - maxShown} more`)] : shown
  }
  if (typeof value === 'number') return [{ ...plain(String(value)), value: true }]
  if (typeof value !== 'string' || value === '') return []
  if (!isUid(value)) return [{ ...plain(shortened(value)), value: true }]
  const [kind, name] = about.names[value] ?? []
  if (kind === undefined) return value === operatorUid ? [{ ...plain('operator'), value: true, uid: value }] : []
  return kind === 'group' || kind === 'repository' ? pathParts(value, about) : [named(value, name!, about.present)]
}

/** Path of a group or a repository: the names from the organization on. */
function pathParts(uid: string, { names, present }: About): SentencePart[] {
  const path = lineage(uid)
    .reverse()
    .map((one) => names[one]?.[1])
  if (path.every((name) => name === undefined)) return [plain('a removed folder')]
  return [named(uid, path.map((name) => name ?? '…').join('/'), present)]
}

const digest = /^sha\d{3}:([0-9a-f]{8})[0-9a-f]+$/
const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z$/
const maxText = 200

/** Digests have eight digits, and times no seconds. */
function shortened(text: string): string {
  const short = text.replace(digest, '$1').replace(time, '$1 $2 UTC')
  return short.length > maxText ? `${short.slice(0, maxText).toWellFormed()}…` : short
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  if (Array.isArray(value)) return value.map((one) => valueAt(one, path))
  if (typeof value !== 'object' || value === null) return undefined
  const own = renamed(value as Record<string, unknown>)
  return Object.hasOwn(own, name) ? valueAt(own[name], rest) : undefined
}

/** Joins plain parts that follow each other, and removes a double space where a value was missing. */
function merged(parts: readonly SentencePart[]): SentencePart[] {
  const joined: SentencePart[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (last && !last.value && !part.value) joined[joined.length - 1] = plain(last.text + part.text)
    else joined.push(part)
  }
  return joined
    .map((part) => (part.value ? part : { ...part, text: part.text.replace(/ {2,}/g, ' ') }))
    .filter(({ text }) => text !== '')
}
