// Lists of tags in a view, or for somebody whom a rule is for: what they can pull.
import { askedOf, pullStatement, unviewed } from '#domains/registry/pull-rules/asked-tags.service.ts'
import { boundBy, Passing } from '#domains/registry/pull-rules/bound-pulls.service.ts'
import { strictest } from '#domains/registry/pull-rules/pull-rules.model.ts'
import type { RepoRef } from '#domains/registry/repos/repos.model.ts'
import { quarantinedAs } from '#domains/registry/retention/quarantine.service.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import { rowsOf } from '#domains/registry/views/resolve.service.ts'
import type { Listing } from '#domains/registry/views/view-lists.service.ts'
import type { Visit } from '../visit.ts'
import { timeFor } from './pulls.ts'

/** `undefined` where the tags are listed as they are. */
export async function listingFor(visit: Visit, repo: RepoRef): Promise<Listing | undefined> {
  const { call, view } = visit
  const bound = await boundBy(call, repo)
  if (!view && (!bound || bound.enforced.length === 0)) return undefined
  const seen = view ?? unviewed
  const now = timeFor(visit, seen)
  const until = rowsOf({ until: seen.at ?? now, isNow: seen.at === undefined })
  const of = (tag: string) => askedOf(now, seen, bound, tag).question
  const passing = bound && new Passing(call, repo, bound.enforced, bound.accepted)
  const listing: Listing = {
    until,
    of,
    isAboutDigest: (tag) => digestAbout(tag) !== undefined,
    async standsNow(tag) {
      const pulled = await pullStatement(call, repo, tag, askedOf(now, seen, bound, tag), passing)
      return pulled !== undefined && !(await isQuarantined(visit, repo, pulled.manifest.digest))
    },
  }
  if (!passing || bound.enforced.length === 0) return listing
  const passes = async (tag: string, digest: string, latest: string): Promise<boolean> => {
    const rule = strictest(bound.enforced, tag)
    if (!rule) return true
    if (seen.at !== undefined) return passing.tag(digest, tag)
    return rule.mode !== 'DENY' || digest === latest
  }
  return { ...listing, passes }
}

async function isQuarantined({ call }: Visit, repo: RepoRef, digest: string): Promise<boolean> {
  return (await quarantinedAs(call, repo, { type: 'manifest', digest })) !== undefined
}
