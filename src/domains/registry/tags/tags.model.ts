import type { By } from '#caller.ts'
import { digestPattern, isDigest } from '#lib/digest.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { tagPattern } from '#lib/oci-names.ts'

/** A name in a repo that points to an image. */
export type Tag = {
  uid: string
  name: string
  /** Empty when it points to nothing yet; then it cannot be pulled, and the ledger does not know it. */
  digest: string
  /** A client has said that it has reached its end of life. */
  deprecated: boolean
  /** It is no longer rebuilt, as far as is known of what it points to; brought up to date by a duty. */
  inactive: boolean
  bundles: string[]
  createTime: string
  updateTime: string
  /** When it took its present digest; empty without one. */
  assignTime: string
}

export const aTag = kindOf<Tag>('tag')

export const tagType = 'registry.pinfold.dev/Tag'

/** The repo of a tag: its number, its uid, and the number of the ledger that its tags are written to. */
export type TagRepo = { id: number; uid: string; ledger: number }

/** Who moves a tag, by which door, and when as far as the server's clock knows. */
export type Mover = {
  now: string
  actor: string
  source: Source
  /** Whom rules of movers judge, where the ledger names something else. */
  inNameOf?: string
}
export type Source = 'oci' | 'api' | 'import' | 'sync' | 'upstream'

/** Uid of the actor in the tag history: the push token, whose uid begins with that of its maker, or the caller. */
export function actorOf({ caller }: Pick<By, 'caller'>): string {
  return caller.token?.pushToken ?? caller.uid
}

/** What a client may set, sort by and filter on. */
export const tagFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', sort: true, required: true, pattern: tagPattern },
  digest: { column: 'digest', sort: true, required: true, pattern: digestPattern },
  bundles: {
    column: 'bundles',
    pattern: /^(?:application|base|byol|ai|ai-gpu|featured|fips|commercial|emeritoss)$/,
  },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Tag>

/** How many bundles one tag may have. */
export const maxBundles = 1000

/** The kinds of names that lists hide unless asked for (behaviour 8.4), as bits: a name can be of several kinds. */
export const shapes = { referrers: 1, dates: 2, epochs: 4 } as const
export const everyShape = shapes.referrers | shapes.dates | shapes.epochs

const dated = /-20\d{6}(?:\d{2}|\d{4}|\d{6})?$/

export function shapeOf(name: string): number {
  return (
    (name.startsWith('sha256-') ? shapes.referrers : 0) |
    (dated.test(name) ? shapes.dates : 0) |
    (/-r[0-9]+$/.test(name) ? shapes.epochs : 0)
  )
}

/** Signatures, attestations and SBOMs. */
const suffixesOfCosign = ['sig', 'att', 'sbom']

/**
 * What a tag names that is called after a digest: `sha256-HEX` of clients without the referrers API, `sha256-HEX.SUFFIX` of
 * cosign and others. `undefined` for other tags; one that is called after a SHA-512 in full would be too long for a tag.
 */
export function digestAbout(name: string): { digest: string; suffix: string } | undefined {
  const [, hex, suffix = ''] = /^sha256-([0-9a-f]{64})(?:\.(.+))?$/.exec(name) ?? []
  return hex === undefined ? undefined : { digest: `sha256:${hex}`, suffix }
}

/** What a tag of cosign names: the digest that it has signatures, attestations or SBOMs of; undefined for other tags. */
export function subjectOfTag(name: string): string | undefined {
  const about = digestAbout(name)
  return about && suffixesOfCosign.includes(about.suffix) ? about.digest : undefined
}

/** The tags that `subjectOfTag` says this digest of. */
export function tagsAbout(digest: string): string[] {
  return suffixesOfCosign
    .map((suffix) => `${digest.replace(':', '-')}.${suffix}`)
    .filter((tag) => subjectOfTag(tag) === digest)
}

/** The image that a tag has attestations of, as cosign names them; undefined for other tags. */
export function attestedByTag(tag: string): string | undefined {
  const [, digest] = /^((?:sha256|sha512)-[0-9a-f]+)\.att$/.exec(tag) ?? []
  const image = digest?.replace('-', ':')
  return image !== undefined && isDigest(image) ? image : undefined
}

/** The shapes that a list shows which asks for the kinds of `asked`. */
export function visibleShapes(asked: number): number[] {
  return Array.from({ length: 8 }, (_, shape) => shape).filter((shape) => (shape & ~asked) === 0)
}

/** The tags of a repo in short: how many, when one of them last changed, and what is its latest image. */
export type TagsSummary =
  | { count: 0 }
  | {
      count: number
      lastUpdated: string
      /** The tag `latest`, else the one that changed last. */
      latest: Tag
      /** The longest other name of that image; empty when it has none. */
      latestVersion: string
    }

/** A repo with a tag that moved within a week is kept up to date. */
export const recentMs = 7 * 24 * 3_600_000

/** How many records one answer about the history of a tag holds; the next ones start at the time of the last. */
export const maxRecords = 1000
