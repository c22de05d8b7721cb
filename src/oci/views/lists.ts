// Tag lists in a view, or for callers under a cooldown policy. They contain only tags that the caller can pull.
import { isRefused, pullStatement, withCooldown } from '#domains/policy/pull-rules/asked-tags.service.ts'
import { boundBy, Passing } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import { quarantinedAs } from '#domains/policy/retention/quarantine.service.ts'
import { rowsOf } from '#domains/policy/views/resolve.service.ts'
import type { Listing } from '#domains/policy/views/view-lists.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import type { Visit } from '../visit.ts'
import { questionOf } from './pulls.ts'

/** Rules that select the tags of a list. Returns undefined if neither a view nor an enforced cooldown policy applies. */
export async function listingFor(visit: Visit, repo: RepoRef): Promise<Listing | undefined> {
  const { call, view } = visit
  const bound = await boundBy(call, repo)
  if (!view && (!bound || bound.enforced.length === 0)) return undefined
  const question = questionOf(visit, view)
  const of = (tag: string) => withCooldown(question, bound, tag)
  const passing = bound && new Passing(call, repo, bound.enforced, bound.accepted)
  const listing: Listing = {
    until: rowsOf(question),
    of: (tag) => of(tag).question,
    isAboutDigest: (tag) => digestAbout(tag) !== undefined,
    async standsNow(tag) {
      const pulled = await pullStatement(call, repo, tag, of(tag), passing)
      return pulled !== undefined && !(await isQuarantined(visit, repo, pulled.manifest.digest))
    },
  }
  if (!passing || bound.enforced.length === 0) return listing
  const passes = async (tag: string, digest: string, latest: string): Promise<boolean> => {
    const answer = { chosen: { digest }, latest: { digest: latest } }
    return !(await isRefused(of(tag), answer, (one) => passing.tag(one, tag)))
  }
  return { ...listing, passes }
}

async function isQuarantined({ call }: Visit, repo: RepoRef, digest: string): Promise<boolean> {
  return (await quarantinedAs(call, repo, { type: 'manifest', digest })) !== undefined
}
