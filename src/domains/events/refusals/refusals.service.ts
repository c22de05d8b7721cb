import type { Call } from '#app.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import type { Refusal } from './refusals.model.ts'
import * as store from './refusals.store.ts'

/** Lists refused requests in the group and its descendants. */
export async function listRefusals(call: Call, group: string, page: Page): Promise<Listed<Refusal>> {
  const { db } = call.app
  await requireGroup(db, group)
  const [rows, total] = await Promise.all([store.listRefusals(db, group, page), store.countRefusals(db, group)])
  return toListed(call, page, rows, total)
}
