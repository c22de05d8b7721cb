import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { invalid } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { lineage } from '#lib/uid.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listFrom } from '../groups/list-nodes.ts'
import { acceptedTerms, type TermsAcceptance } from './terms.model.ts'
import * as store from './terms.store.ts'

/** Page size that is larger than any list of acceptances, as explained in the store. */
const maxAccepted = 10_000

/** Accepts documents for a group. If all were accepted before, changes nothing and emits no event. */
export async function acceptTerms(call: Call, group: string, documentIds: readonly string[]): Promise<string[]> {
  const known = new Set(call.app.config.termsDocuments.map(({ id }) => id))
  const wanted = [...new Set(documentIds)]
  if (wanted.length === 0) throw invalid({ field: 'document_ids', description: 'must have at least one id' })
  if (!wanted.every((id) => known.has(id))) {
    throw invalid({ field: 'document_ids', description: 'has an ID that is not a document of this server' })
  }
  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, group)
    let accepted = 0
    for (const docId of wanted) {
      const acceptance = { docId, orgUid: group, acceptedBy: call.caller.uid, createTime: call.now }
      if (await store.insertAcceptance(tx, acceptance)) accepted++
    }
    if (accepted === 0) return
    const resource = acceptedTerms({ group, documentIds: wanted })
    await emit(tx, call, 'iam.terms.accepted', { subject: group, group, resource })
  })
  call.log.info('terms accepted', { group, documents: wanted })
  return wanted
}

/** Acceptances of the group and of the groups above it. */
export async function listTermsAcceptances(
  call: Call,
  query: ListQuery<{ group: string }>,
): Promise<Listed<TermsAcceptance>> {
  const { group } = query.filter
  await requireGroup(call.app.db, group)
  return listFrom(call, query, lineage(group), { list: store.listAcceptances, count: store.countAcceptances })
}

/** All acceptances for the group and the groups above it, the oldest first. Empty if the group does not exist. */
export async function listAccepted(call: Call, group: string): Promise<TermsAcceptance[]> {
  const order = { field: 'createTime', column: 'create_time', desc: false }
  const page = { order, after: undefined, size: maxAccepted, skip: 0, binding: '' }
  return store.listAcceptances(call.app.db, lineage(group), page)
}
