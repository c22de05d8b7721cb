import type { By } from '#caller.ts'
import { digestPattern, isDigest } from '#lib/digest.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { tagPattern } from '#lib/oci-names.ts'

/** A name in a repository that points to an image. */
export type Tag = {
  uid: string
  name: string
  /** Empty if the tag points to nothing yet. Such a tag cannot be pulled and has no row in the tag history. */
  digest: string
  /** True if a client has marked the tag as deprecated. */
  deprecated: boolean
  /** True if the image is no longer rebuilt, according to the background job for end of life. */
  inactive: boolean
  bundles: string[]
  createTime: string
  updateTime: string
  /** Time of the assignment of the current digest. Empty if the tag has no digest. */
  assignTime: string
}

export const toTagResource = kindOf<Tag>('tag')

export const tagType = 'registry.pinfold.dev/Tag'

/** Repository of a tag: its number, its uid, and the number of its tag history. */
export type TagRepo = { id: number; uid: string; ledger: number }

/** Actor, source and time of an assignment, by the clock of the server. */
export type AssignmentCause = {
  now: string
  actor: string
  source: Source
  /** Identity to which tag protection rules apply, if it is not the actor. */
  inNameOf?: string
}
export type Source = 'oci' | 'api' | 'import' | 'sync' | 'upstream'

/** Uid of the actor in the tag history: the push token, whose uid begins with the uid of its owner, or the caller. */
export function actorOf({ caller }: Pick<By, 'caller'>): string {
  return caller.token?.pushToken ?? caller.uid
}

/** Fields that a client can set or sort by, and their valid values. */
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

/** Most bundles of one tag. */
export const maxBundles = 1000

/**
 * Kinds of names that lists hide unless a client requests them (behavior 8.4). Each kind is one bit, since a name can be of
 * several kinds.
 */
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

/** Suffixes of cosign tags: signatures, attestations and SBOMs. */
const suffixesOfCosign = ['sig', 'att', 'sbom']

/**
 * Digest in the name of a tag. Clients without the referrers API write `sha256-HEX`; cosign and other tools write
 * `sha256-HEX.SUFFIX`. Undefined for other tags. A whole SHA-512 would be too long for a tag.
 */
export function digestAbout(name: string): { digest: string; suffix: string } | undefined {
  const [, hex, suffix = ''] = /^sha256-([0-9a-f]{64})(?:\.(.+))?$/.exec(name) ?? []
  return hex === undefined ? undefined : { digest: `sha256:${hex}`, suffix }
}

/** Digest of the image whose signatures, attestations or SBOMs are under a cosign tag. Undefined for other tags. */
export function subjectOfTag(name: string): string | undefined {
  const about = digestAbout(name)
  return about && suffixesOfCosign.includes(about.suffix) ? about.digest : undefined
}

/** Cosign tags for a digest, the inverse of `subjectOfTag`. */
export function tagsAbout(digest: string): string[] {
  return suffixesOfCosign
    .map((suffix) => `${digest.replace(':', '-')}.${suffix}`)
    .filter((tag) => subjectOfTag(tag) === digest)
}

/** Digest of the image that an attestation tag of cosign is about. Undefined for other tags. */
export function attestedByTag(tag: string): string | undefined {
  const [, digest] = /^((?:sha256|sha512)-[0-9a-f]+)\.att$/.exec(tag) ?? []
  const image = digest?.replace('-', ':')
  return image !== undefined && isDigest(image) ? image : undefined
}

/** Shapes of names that a list shows if a client requests the kinds in `asked`. */
export function visibleShapes(asked: number): number[] {
  return Array.from({ length: 8 }, (_, shape) => shape).filter((shape) => (shape & ~asked) === 0)
}

/** Summary of the tags of a repository: number, last change, and the latest image. */
export type TagsSummary =
  | { count: 0 }
  | {
      count: number
      lastUpdated: string
      /** The tag `latest`, or else the tag that was changed last. */
      latest: Tag
      /** Longest other tag of the same image. Empty if there is none. */
      latestVersion: string
    }

/** A repository counts as maintained if a tag was assigned within a week. */
export const recentMs = 7 * 24 * 3_600_000

/** Most records in one response about the history of a tag. The next response starts at the time of the last record. */
export const maxRecords = 1000
