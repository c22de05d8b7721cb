// JSON of manifests, parsed once and with limits on memory and time.
import { type JsonLimits, jsonProblem, scanJson } from '#lib/json/json-limits.ts'
import { parseUniqueJson } from '#lib/json/unique-json.ts'
import { maxListedManifests } from './manifests.model.ts'

/** Problem that makes a manifest invalid; `unsupported` is true for a kind that the registry does not accept. */
export class ManifestProblem extends Error {
  override name = 'ManifestProblem'
  readonly unsupported: boolean
  constructor(message: string, unsupported = false) {
    super(message)
    this.unsupported = unsupported
  }
}

/** A limit that a manifest exceeds. The message has no text of the manifest. */
export class ManifestLimit extends ManifestProblem {
  override name = 'ManifestLimit'
}

/** Limits for new manifests. Manifests accepted by earlier releases stay readable. */
export const manifestLimits = {
  depth: 32,
  /**
   * Most members of objects and elements of arrays together. An index may have `membersOfEntry` for each manifest that it lists.
   */
  members: 20_000,
  membersOfEntry: 20,
  annotations: 1000,
}

const mostMembers = Math.max(manifestLimits.members, maxListedManifests * manifestLimits.membersOfEntry)
/** Limits for stored manifests, which have at most 4 MiB. */
const storedLimits: JsonLimits = { depth: 255, members: Number.POSITIVE_INFINITY }

export type Members = Record<string, unknown>

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Members of a stored manifest. Throws ManifestProblem. */
export function membersOf(content: Uint8Array): Members {
  const members = scanJson(content, storedLimits)
  if (typeof members === 'string') throw new ManifestProblem(`the manifest ${members}`)
  return parseDocument(content, members).document
}

/** Members of a manifest that is pushed or comes from an upstream. Throws ManifestProblem. */
export function newMembersOf(content: Uint8Array): Members {
  const { depth, annotations, members, membersOfEntry } = manifestLimits
  const tooMany = () => new ManifestLimit(`the manifest has more than ${members} JSON members and elements`)
  // The limits are checked before parsing creates any value.
  const scanned = scanJson(content, { depth, members: mostMembers })
  if (typeof scanned === 'string') {
    const isTooDeep = jsonProblem(content, { depth, members: Number.POSITIVE_INFINITY }) !== undefined
    throw isTooDeep ? new ManifestLimit(`the manifest is nested deeper than ${depth} levels`) : tooMany()
  }
  const { document, counted } = parseDocument(content, scanned)
  if (counted.annotations > annotations) {
    throw new ManifestLimit(`the manifest has annotations with more than ${annotations} entries in one object`)
  }
  const listed = Array.isArray(document.manifests) ? document.manifests.length : 0
  if (counted.members > Math.max(members, listed * membersOfEntry)) throw tooMany()
  return document
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** `members` is the number of members in the text, as counted by `scanJson`. */
function parseDocument(content: Uint8Array, members: number): { document: Members; counted: Counted } {
  try {
    const text = utf8.decode(content)
    const document: unknown = JSON.parse(text)
    const counted = count(document)
    // If the text has more members than the parsed value, a member occurs twice. Readers would disagree about the content.
    if (members > counted.members) parseUniqueJson(text)
    if (isObject(document)) return { document, counted }
  } catch (error) {
    throw new ManifestProblem(`the manifest is not valid JSON: ${(error as Error).message.slice(0, 200)}`)
  }
  throw new ManifestProblem('the manifest is not a JSON object')
}

/** Counts of a document. `annotations` is the number of entries of the largest object of that name. */
type Counted = { members: number; annotations: number }

function count(document: unknown): Counted {
  const counted = { members: 0, annotations: 0 }
  const annotations = new Set<unknown>()
  for (const left: unknown[] = [document]; left.length > 0; ) {
    const value = left.pop()
    if (Array.isArray(value)) {
      counted.members += value.length
      for (const one of value) if (typeof one === 'object' && one !== null) left.push(one)
    } else if (isObject(value)) {
      // Reads the keys only once, since this is slow for an object with very many keys.
      const names = Object.keys(value)
      counted.members += names.length
      if (annotations.has(value)) counted.annotations = Math.max(counted.annotations, names.length)
      for (const name of names) {
        const one = value[name]
        if (typeof one !== 'object' || one === null) continue
        left.push(one)
        if (name === 'annotations') annotations.add(one)
      }
    }
  }
  return counted
}
