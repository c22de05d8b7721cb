// Accepted risks, and findings that events report: each query uses an index.

import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import * as gates from '#domains/policy/gates/gates.store.ts'
import * as lists from '#domains/registry/images/image-lists.store.ts'
import { wasPulledOn } from '#domains/registry/usage/digest-usage.store.ts'
import * as changes from '#domains/scanning/changes/changes.store.ts'
import * as later from '#domains/scanning/changes/changes.store.ts'
import { firstFindingsIn } from '#domains/scanning/image-findings/image-findings.store.ts'
import * as risks from '#domains/scanning/risks/risks.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const group = 'a'.repeat(40)
const time = '2026-03-01T00:00:00.000Z'
const byUid = { field: 'uid', column: 'uid', desc: false }
const page = { order: byUid, after: undefined, size: 50, skip: 0, binding: '' }
const apk = { kind: 'apk' as const, ecosystem: '', name: 'a', version: '1', origin: 'a', originVersion: '1', arch: '' }
const packages = [1, 2].flatMap((componentNo) =>
  ['', group].map((organization) => ({ ...apk, componentNo, organization })),
)

const asked: Record<string, (reader: Reader) => Promise<unknown>> = {
  'a risk': (reader) => risks.riskTable.find(reader, group),
  'risks whose time has come': (reader) => risks.riskTable.due(reader, time, 100),
  'a page of risks': (reader) => risks.riskTable.list.page(reader, [group], page, { now: time }),
  'a page of all risks': (reader) => risks.riskTable.list.page(reader, ['/'], page, { now: undefined }),
  'how many risks hold': (reader) => risks.countLive(reader, group, 5000),
  'how many risks there are of one vulnerability': (reader) => risks.countOf(reader, group, 'CVE-1', 200),
  'whether there are risks': (reader) => risks.hasRisks(reader, [group, `${group}/${'1'.repeat(16)}`]),
  'risks of some vulnerabilities': (reader) => risks.risksOf(reader, [group], ['CVE-1', 'CVE-2']),
  'a gate': (reader) => gates.gateTable.find(reader, group),
  'whether there is a gate': (reader) => gates.gateTable.any(reader),
  'a page of gates': (reader) => gates.gateTable.list.page(reader, [group], page, {}),
  'a page of all gates': (reader) => gates.gateTable.list.page(reader, ['/'], page, {}),
  'exceptions from gates that hold': (reader) =>
    gates.gateExceptionTable.list.page(reader, [group], page, { now: time }),
  'a page of all exceptions from gates': (reader) =>
    gates.gateExceptionTable.list.page(reader, ['/'], page, { now: undefined }),
  'whether something was pulled': (reader) =>
    wasPulledOn(reader, { repo: 1, digest: 'sha256:0' }, { from: '2026-03-01', until: '2026-03-09' }),
  'what was ever found in packages': (reader) => firstFindingsIn(reader, [1, 2], ['own']),
  'whether packages wait': (reader) => changes.waitingItems(reader, 1, ['a', 'b']),
  'findings of packages to tell of': (reader) => changes.reportableFindings(reader, packages, 'own'),
  'how many findings there are to tell of': (reader) => changes.countReportable(reader, packages),
  'whether a list waits': (reader) => later.waitsForMatch(reader, 1),
  'the next list with something to tell later': (reader) => later.nextLater(reader, 1),
  'what is to be told of a list later': (reader) => later.laterOf(reader, 1, 10),
  'the next change': (reader) => changes.nextChange(reader),
  'a page of the packages of a change': (reader) => changes.changedComponents(reader, 1, { after: 0, most: 100 }),
  'tags of a repo with their lists': (reader) => lists.liveTags(reader, 1),
  'repos with a list': (reader) => lists.reposOfLists(reader, ['a', 'b']),
}

for (const [what, ask] of Object.entries(asked)) {
  test(`${what}: uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, what)
  })
}
