// Exemptions: digests that pass policies until a date.
import { ask } from '../../data/api.ts'
import type { CapabilityName } from '../../data/rights.ts'
import { Digest, Time } from '../../ui/text.tsx'
import { ruleWords } from '../../words/rules.ts'
import { words } from '../../words.ts'
import type { Kind } from './scoped-list.tsx'
import { timeOf, untilField } from './until.ts'

type Exemption = {
  uid: string
  digest: string
  reason: string
  createTime: string
  expireTime: string
  revokeTime: string
}

type Options = {
  path: string
  member: string
  empty: string
  /** Latest possible expiry of an exemption. */
  untilHint: string
  revokeText: string
  needs?: { create: CapabilityName; end: CapabilityName }
}

export function createExemptionKind({ path, member, empty, untilHint, revokeText, needs }: Options): Kind<Exemption> {
  return {
    ...{ title: ruleWords.exemptions, empty, path, member, nameOf: ({ digest }) => digest, ...(needs && { needs }) },
    columns: [
      { title: words.digest, isHead: true, cell: ({ digest }) => <Digest of={digest} /> },
      { title: words.reason, cell: ({ reason }) => <bdi>{reason}</bdi> },
      { title: words.from, cell: ({ createTime }) => <Time at={createTime} /> },
      { title: words.to, cell: ({ revokeTime, expireTime }) => <Time at={revokeTime || expireTime} /> },
    ],
    create: {
      summary: ruleWords.newExemption,
      button: ruleWords.createExemption,
      fields: () => [
        { name: 'digest', label: words.digest },
        { name: 'reason', label: words.reason },
        untilField(untilHint),
      ],
      send: async (at, { digest, reason, expireTime }) => {
        await ask('POST', `${path}/${at}`, { body: { digest, reason, expireTime: timeOf(expireTime) } })
      },
    },
    end: {
      button: words.revoke,
      text: revokeText,
      isOver: ({ revokeTime, expireTime }) => Boolean(revokeTime) || Date.parse(expireTime) <= Date.now(),
      send: async ({ uid }) => {
        await ask('POST', `${path}/${uid}:revoke`, { body: {} })
      },
    },
  }
}
