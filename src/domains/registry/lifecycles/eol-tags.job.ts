import type { Job } from '#job.ts'
import { parentOf } from '#lib/uid.ts'
import { setInactive } from '../tags/tags.store.ts'
import { judge } from './eol-tags.service.ts'
import { type JudgedTag, saveMains, tagsAfter } from './lifecycles.store.ts'
import { readingOf } from './main-packages.service.ts'

const tagsAtOnce = 500

/**
 * Background job that computes the status of each tag, stores the main package of its image, and marks tags that are no longer
 * rebuilt.
 */
export const judgeTags: Job = {
  name: 'registry.lifecycles',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run(app, lease) {
    let changed = 0
    let mains = 0
    for (let after = ''; ; ) {
      lease.check()
      const tags = await tagsAfter(app.db, after, tagsAtOnce)
      if (tags.length === 0) return { changed, mains }
      const repoUid = parentOf(tags[0]!.uid)
      const some = tags.filter(({ uid }) => parentOf(uid) === repoUid)
      const now = app.clock().toISOString()
      const found = await judge(app, repoUid, some, now, readingOf(lease.signal))
      const byUid = new Map<string, JudgedTag>(some.map((tag) => [tag.uid, tag]))
      const differing = found.tags.flatMap(({ tag, standing }) => {
        const judged = byUid.get(tag.uid)!
        // Tags that a client has marked as deprecated need no mark, since they are shown as deprecated anyway.
        const inactive = standing.tagStatus === 'inactive' && !judged.deprecated
        return judged.inactive === inactive ? [] : [{ judged, inactive }]
      })
      if (found.fresh.length + differing.length > 0) {
        const counted = await lease.tx(async (tx) => {
          await saveMains(tx, found.repo, found.fresh)
          let sum = 0
          for (const { judged, inactive } of differing) sum += await setInactive(tx, judged, inactive)
          return sum
        })
        changed += counted
        mains += found.fresh.length
      }
      after = found.tags.at(-1)!.tag.uid
    }
  },
}
