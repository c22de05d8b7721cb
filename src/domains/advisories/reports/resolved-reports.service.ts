// Reports vulnerabilities that tag updates resolved, by day. docs/reference/resolved-vulnerabilities.md has the exact definition.

import type { Call } from '#app.ts'
import { findByPath } from '#domains/registry/repos/paths.service.ts'
import { type FieldViolation, invalid, notFound, refuseIfAny } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { isAtOrBelow, isUid, top } from '#lib/uid.ts'
import { distinct, severitiesOf } from '../metadata/vulnerabilities.service.ts'
import { type FollowedTag, resolvedByDay } from './resolved-days.service.ts'
import {
  dayMs,
  defaultTag,
  type ImageRef,
  maxDays,
  maxRangeMs,
  maxTags,
  type ResolvedReport,
} from './resolved-reports.model.ts'

export type ReportRequest = {
  images: readonly ImageRef[]
  start: string
  end: string
  /**
   * If true, images of missing repositories are left out of the report. If false, they cause NOT_FOUND for callers who would be
   * able to see the repository.
   */
  lenient?: boolean
}

/** Lists one report for each day (UTC) from `start` to `end`, inclusive. Images that the caller cannot see are ignored. */
export async function listResolvedReports(
  call: Call,
  { page, filter: request }: ListQuery<ReportRequest>,
): Promise<Listed<ResolvedReport & { uid: string }>> {
  checkRequest(request)
  const tags = await findTags(call, request)
  const days = daysOf(request)
  const shown = pageOf(days, page)
  const resolved = await resolvedByDay(call, tags, { ...request, days: shown.slice(0, page.size).sort() })
  const advisories = [...resolved.values()].flat()
  const severities = await severitiesOf(
    call.app.db,
    advisories.flatMap(({ aliases }) => aliases),
  )
  const reports = shown.map((date) => ({
    uid: date,
    date,
    resolved: (resolved.get(date) ?? []).map(({ advisoryId, aliases }) => ({
      id: advisoryId,
      aliases,
      severities: distinct(aliases.flatMap((alias) => severities.get(alias) ?? [])),
    })),
  }))
  return toListed(call, page, reports, days.length)
}

/** Lists the reports of all days, the oldest first. */
export async function listAllResolvedReports(call: Call, filter: ReportRequest): Promise<ResolvedReport[]> {
  const order = { field: 'date', column: 'date', desc: false }
  const page: Page = { order, after: undefined, size: maxDays, skip: 0, binding: '' }
  return (await listResolvedReports(call, { uidp: undefined, page, filter })).items
}

function checkRequest({ images, start, end }: ReportRequest): void {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field, description })
  if (images.length === 0) say('image_refs', 'is required')
  if (start === '') say('start_time', 'is required')
  if (end === '') say('end_time', 'is required')
  else if (start !== '' && end < start) say('end_time', 'must not be before start_time')
  else if (start !== '' && Date.parse(end) - Date.parse(start) > maxRangeMs) {
    say('end_time', 'must be at most 366 days after start_time')
  }
  for (const [i, { repo, tags }] of images.entries()) {
    if (repo === '') say(`image_refs[${i}].repo`, 'is required')
    else if (!isUid(repo) && !isRepoPath(repo))
      say(`image_refs[${i}].repo`, 'must be the uid or the path of a repository')
    if (!tags.every(isTagName)) say(`image_refs[${i}].tags`, 'must have valid names of tags only')
  }
  refuseIfAny(problems)
  const total = images.reduce((sum, { tags }) => sum + Math.max(tags.length, 1), 0)
  if (total > maxTags) throw invalid({ field: 'image_refs', description: `must have at most ${maxTags} tags` })
}

/** Midnight of each day in the requested range, in order. */
function daysOf({ start, end }: ReportRequest): string[] {
  const days: string[] = []
  for (let day = Math.floor(Date.parse(start) / dayMs); day * dayMs <= Date.parse(end); day++) {
    days.push(new Date(day * dayMs).toISOString())
  }
  return days
}

/** One page of days, and one more day. */
function pageOf(days: readonly string[], { order, after, skip, size }: Page): string[] {
  const ordered = order.desc ? days.toReversed() : [...days]
  const start = after ? ordered.indexOf(after.value) + 1 : 0
  return ordered.slice(start + skip, start + skip + size + 1)
}

/** Tags without duplicates, in repositories that the caller can see. */
async function findTags(call: Call, { images, lenient = false }: ReportRequest): Promise<FollowedTag[]> {
  const followed = new Map<string, FollowedTag>()
  for (const { repo: named, tags } of images) {
    const repo = await visibleRepo(call, named, lenient)
    if (!repo) continue
    for (const tag of tags.length > 0 ? tags : [defaultTag]) followed.set(`${repo.id} ${tag}`, { repo, tag })
  }
  return [...followed.values()]
}

/** Finds a repository that the caller can see. Throws NOT_FOUND if it does not exist and the caller would be able to see it. */
async function visibleRepo(call: Call, named: string, lenient: boolean) {
  const sees = (uid: string) => call.reach.some((scope) => isAtOrBelow(uid, scope))
  const found = await findByPath(call.app.db, named)
  if (found.repo) return sees(found.repo.uid) ? found.repo : undefined
  if (!lenient && sees(found.group || top)) throw notFound('registry.pinfold.dev/Repo', named)
  return undefined
}
