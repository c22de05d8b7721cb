// The past of tags as upstreams tell it, for whoever asks; no rule and no view reads it.
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { found } from '#lib/errors.ts'
import { type Page, toListed } from '#lib/lists/paging.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { mostCounted } from './tag-history.model.ts'
import { checkRequest, type RecordFilter } from './tag-history.service.ts'
import * as store from './told-moves.store.ts'

export type ToldRecord = store.ToldRecord
const readUpstreams = [capabilityNumber('registry.settings.update')]

/** A page. Where upstreams are is empty for whoever may not see the upstreams there. */
export async function listTold(call: Call, repoUid: string, page: Page, filter: RecordFilter) {
  checkRequest(page, filter)
  const { db } = call.app
  const { ledger } = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const { tag, digest, from, before } = filter
  const window = { from, before, digest: digest || undefined }
  const rows = await store.listTold(db, ledger, tag || undefined, window, page)
  const maySee = call.caller.rights.holds(repoUid, readUpstreams)
  const tieOf = (row: ToldRecord) => (page.order.field === 'time' ? row.tag : row.time)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...row, uid: `${row.teller} ${tieOf(row)}`, origin: maySee ? row.origin : '' })),
    await store.countMatching(db, ledger, tag || undefined, window, mostCounted),
  )
}
