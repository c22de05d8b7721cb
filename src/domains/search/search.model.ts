import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import type { Fields } from '#lib/fields.ts'
import { foldText, type Rank, ranks } from '#lib/lists/search-text.ts'

/** Kinds of results, in the order of results that match equally well. */
export const kinds = [
  'organization',
  'folder',
  'repository',
  'tag',
  'digest',
  'package',
  'vulnerability',
  'member',
] as const
export type Kind = (typeof kinds)[number]

/** Results have a fixed order, which requests cannot change. */
export const resultFields = { rank: { column: 'rank', sort: true } } as const satisfies Fields<{ rank: string }>

/** Time limit for one search in ms. After this time, the page is returned with the results that were found. */
export const searchMs = 1000
/** Up to this number, results of one kind that match equally well are sorted by their last update. */
export const mostSorted = 200
const mostCharacters = 128
const mostPerKind = 20

export type Result = {
  kind: Kind
  match: Rank
  name: string
  path: string
  uid: string
  repoUid: string
  digest: string
  detail: string
  /** Empty if the resource has no such time. */
  updateTime: string
}

export type SearchQuery = { query: string; kinds: readonly string[]; scope: string; perKind: number }

/** Parts of the text of a search. All but `given` are folded. */
export type Wanted = {
  /** The whole text. */
  text: string
  /** The text as given, for names in which case matters. */
  given: string
  /** Names of the groups before the last slash. Undefined if the text has no slash. */
  groups: readonly string[] | undefined
  /** The text after the last slash. */
  leaf: string
  /** Name of the repository and start of the tag, for a text such as `app:1.0`. */
  tagged: { repo: string; tag: string } | undefined
  /** Starts of digests. Empty if the text cannot be a digest. */
  digests: readonly string[]
}

const controls = /\p{Cc}/u

/** Reads the text. Throws INVALID_ARGUMENT if it is empty or too long. */
export function readQuery({ query, kinds: asked, perKind }: SearchQuery, isPaged: boolean): Wanted {
  const given = query.trim().toWellFormed()
  const problems: FieldViolation[] = []
  if (given === '') problems.push({ field: 'query', description: 'is required' })
  if ([...given].length > mostCharacters) {
    problems.push({ field: 'query', description: `must have at most ${mostCharacters} characters` })
  }
  if (controls.test(given)) problems.push({ field: 'query', description: 'must not contain control characters' })
  if (!asked.every((one) => (kinds as readonly string[]).includes(one))) {
    problems.push({ field: 'kinds', description: `must be some of ${kinds.join(', ')}` })
  }
  if (perKind < 0 || perKind > mostPerKind) {
    problems.push({ field: 'per_kind', description: `must be from 1 to ${mostPerKind}, or 0 for all results` })
  }
  if (perKind > 0 && isPaged) {
    problems.push({ field: 'per_kind', description: 'must be 0 if page_token or skip is set' })
  }
  refuseIfAny(problems)
  return readPackageQuery(given)
}

function readPackageQuery(given: string): Wanted {
  const text = foldText(given)
  const slash = text.lastIndexOf('/')
  const leaf = text.slice(slash + 1)
  const colon = leaf.indexOf(':')
  const [, algorithm = '', hex = ''] = /(?:^|@)(?:(sha256|sha512):)?([0-9a-f]{6,128})$/.exec(text) ?? []
  return {
    text,
    given,
    groups: slash < 0 ? undefined : text.slice(0, slash).split('/'),
    leaf,
    tagged: colon > 0 ? { repo: leaf.slice(0, colon), tag: given.slice(given.lastIndexOf(':') + 1) } : undefined,
    digests: hex === '' ? [] : (algorithm === '' ? ['sha256', 'sha512'] : [algorithm]).map((one) => `${one}:${hex}`),
  }
}

/** Rank and source that come next, and where the source continues. */
export type Bucket = { rank: number; source: number; after: string }

/** Position of a search. `seen` is the number of results before it. */
export type Position = Bucket & { seen: number }

export const start: Position = { rank: 0, source: 0, after: '', seen: 0 }

/** Pairs of rank and source from a position on, in the order of the results. */
export function* bucketsFrom(position: Bucket, sources: number): Generator<Bucket> {
  for (let rank = position.rank; rank < ranks.length; rank++) {
    const first = rank === position.rank ? position.source : 0
    for (let source = first; source < sources; source++) {
      const isFirst = rank === position.rank && source === position.source
      yield { rank, source, after: isFirst ? position.after : '' }
    }
  }
}

/** Spellings of a text that names may have in which case matters. */
export const spellingsOf = (text: string): string[] => [
  ...new Set([text, text.toLowerCase(), text.toUpperCase()].filter((one) => one !== '')),
]
