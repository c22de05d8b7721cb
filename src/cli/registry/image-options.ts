// Shared options of the commands for images.
import { isDigest } from '#lib/digest.ts'
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { usageError } from '../framework/cli-error.ts'
import { keyOf, type Options } from '../framework/command.ts'

/** Reads an image pinned by digest. `acme/app@sha256:…` has the same meaning as `acme/app` with `--digest`. */
export function withDigest(options: Options): Options {
  const [image = '', digest] = String(options.image).split('@')
  if (digest === undefined) return options
  if (!isDigest(digest)) throw usageError(`${digest} is not a valid digest: give sha256: and 64 hex digits`)
  if (options.digest !== undefined && options.digest !== digest) {
    throw usageError('the digest after @ and that of --digest differ; give only one of them')
  }
  // If a name has a tag and a digest, the digest selects the image and the tag is ignored.
  return { ...options, image: image.replace(/:[^:/]*$/, ''), digest }
}

const units: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Time at which the duration of `--updated-within` began. */
export function sinceOf(within: Options[string]): string | undefined {
  if (within === undefined) return undefined
  const [, count, unit] = /^(\d{1,6})([mhdw])$/.exec(String(within)) ?? []
  if (!unit) throw usageError('--updated-within must be a duration such as 30m, 12h, 7d or 2w')
  return new Date(Date.now() - Number(count) * units[unit]!).toISOString()
}

/** Time of an option: a date, which is its midnight in UTC, or a time with an offset. */
export function timeOf(options: Options, flag: string): string | undefined {
  const text = options[keyOf(flag)]
  return text === undefined ? undefined : momentOf(String(text), flag)
}

/** Converts a date or a time to a time in UTC. */
export function momentOf(text: string, flag: string): string {
  const instant = parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
  if (instant) return toIso(instant)
  throw usageError(`${flag} must be a date such as 2026-08-01, or a time such as 2026-08-01T12:00:00Z`)
}
