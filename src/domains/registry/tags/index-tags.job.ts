import type { Job } from '#job.ts'
import { rootOf } from '#lib/uid.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import { addSegment, noteDue } from './index-tags.service.ts'
import { type DueIndex, dropSome, dueIndexes } from './tag-parts.store.ts'

const rowsAtOnce = 500

/** Background job that maintains the name indexes of large repositories. */
export const indexTags: Job = {
  name: 'tags.parts',
  everyMs: 15_000,
  runsOn: 'one node',
  async run(app, lease) {
    await noteDue(app, lease)
    let segments = 0
    for (;;) {
      lease.check()
      const due = firstOfEach(await dueIndexes(app.db))
      if (due.length === 0) break
      for (const index of due) segments += await addSegment(app, lease, index)
    }
    return { segments, dropped: await lease.inBatches((tx) => dropSome(tx, rowsAtOnce), inRepo) }
  },
}

/** One index of each organization, so that no organization waits for all indexes of another one. */
function firstOfEach(indexes: readonly DueIndex[]): DueIndex[] {
  const firsts = new Map<string, DueIndex>()
  for (const index of indexes) if (!firsts.has(rootOf(index.uid))) firsts.set(rootOf(index.uid), index)
  return [...firsts.values()]
}
