// Summaries: each query uses an index.
import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import * as summaries from '#domains/summaries/summaries.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const digests = [`sha256:${'a'.repeat(64)}`]

const asked: Record<string, (reader: Reader) => Promise<unknown>> = {
  images: (reader) => summaries.storedImages(reader, 1, digests),
  signatures: (reader) => summaries.referrersOfTypes(reader, { repo: 1, subject: digests[0]!, types: ['a', 'b'] }, 100),
  pulls: (reader) => summaries.pullsSince(reader, { repo: 1, digests, day: '2026-01-01' }),
}

for (const [what, ask] of Object.entries(asked)) {
  test(`${what}: uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, what)
  })
}
