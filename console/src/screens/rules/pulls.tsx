// How old what is pulled has to be, for whom, and what is let through all the same.
import { ask } from '../../data/api.ts'
import type { PullException, PullRule } from '../../data/types.ts'
import { Note } from '../../ui/states.tsx'
import { Badge, Digest, Time } from '../../ui/text.tsx'
import { words } from '../../words.ts'
import {
  type At,
  EndedToo,
  ForSettings,
  type Kind,
  linesOf,
  PlacedList,
  sendTo,
  tagFields,
  tagsColumn,
  type Values,
} from './placed-list.tsx'

export function PullRules({ at, query }: { at: At; query: URLSearchParams }) {
  const isEndedToo = query.get('ended') === 'yes'
  return (
    <ForSettings at={at}>
      <Note>{words.pullRulesText}</Note>
      <PlacedList at={at} kind={pullRules} />
      <PlacedList at={at} kind={{ ...exceptions, query: { includeEnded: isEndedToo } }} />
      <EndedToo isOn={isEndedToo} />
    </ForSettings>
  )
}

const path = '/registry/v2/pullRules'
const sent = sendTo(path)
const modes = ['OBSERVE', 'SERVE_OLDER', 'DENY'] as const
const modeKinds = { MODE_UNSPECIFIED: 'plain', OBSERVE: 'warn', SERVE_OLDER: 'good', DENY: 'good' } as const
const countFroms = ['TAG', 'REPO'] as const

const pullRules: Kind<PullRule> = {
  title: words.pullRules,
  empty: words.noPullRules,
  path,
  member: 'pullRules',
  nameOf: ({ name, minAge }) => name || minAge,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name || words.unnamed}</bdi> },
    tagsColumn,
    {
      title: words.boundTo,
      cell: ({ identities, belowGroup }) =>
        belowGroup ? (
          <code title={belowGroup}>{words.belowGroup(belowGroup.slice(-16))}</code>
        ) : (
          <span title={identities.join('\n')}>{words.identityCount(identities.length)}</span>
        ),
    },
    { title: words.minAge, cell: ({ minAge }) => <bdi>{minAge}</bdi> },
    { title: words.whatIsTooYoung, cell: ({ mode }) => <Badge kind={modeKinds[mode]}>{words.pullModes[mode]}</Badge> },
  ],
  create: { summary: words.newPullRule, button: words.create, fields: fieldsOf, send: sent.create(bodyOf) },
  update: sent.update(bodyOf),
  end: { button: words.delete, text: words.deletePullRuleText, send: sent.delete },
}

function fieldsOf(rule?: PullRule) {
  return [
    { name: 'name', label: words.name, value: rule?.name ?? '', isOptional: true },
    ...tagFields(rule),
    {
      name: 'identities',
      label: words.identitiesOfRule,
      hint: words.uidsHint,
      type: 'lines',
      value: rule?.identities.join('\n') ?? '',
      isOptional: true,
    },
    { name: 'belowGroup', label: words.belowGroupUid, value: rule?.belowGroup ?? '', isOptional: true },
    { name: 'minAge', label: words.minAge, hint: words.ageHint, value: rule?.minAge ?? '7d' },
    { name: 'hold', label: words.holdAge, hint: words.holdHint, value: rule?.hold ?? '', isOptional: true },
    {
      name: 'countFrom',
      label: words.countFrom,
      type: 'select',
      value: rule?.countFrom ?? 'TAG',
      options: countFroms.map((value) => ({ value, label: words.countFroms[value] })),
    },
    {
      name: 'mode',
      label: words.whatIsTooYoung,
      type: 'select',
      value: rule?.mode ?? 'OBSERVE',
      options: modes.map((value) => ({ value, label: words.pullModes[value] })),
    },
  ] as const
}

function bodyOf({ tags, exceptTags, identities, ...plain }: Values): object {
  return { ...plain, tags: linesOf(tags), exceptTags: linesOf(exceptTags), identities: linesOf(identities) }
}

const exceptionsPath = '/registry/v2/pullRuleExceptions'

const exceptions: Kind<PullException> = {
  title: words.pullExceptions,
  empty: words.noPullExceptions,
  path: exceptionsPath,
  member: 'pullRuleExceptions',
  nameOf: ({ digest }) => digest,
  columns: [
    { title: words.digest, isHead: true, cell: ({ digest }) => <Digest of={digest} /> },
    { title: words.reason, cell: ({ reason }) => <bdi>{reason}</bdi> },
    { title: words.from, cell: ({ createTime }) => <Time at={createTime} /> },
    { title: words.to, cell: ({ revokeTime, expireTime }) => <Time at={revokeTime || expireTime} /> },
  ],
  create: {
    summary: words.newPullException,
    button: words.letThrough,
    fields: () => [
      { name: 'digest', label: words.digest },
      { name: 'reason', label: words.reason },
      { name: 'expireTime', label: words.untilUtc, hint: words.untilHint, type: 'datetime-local' },
    ],
    send: async (at, { digest, reason, expireTime }) => {
      await ask('POST', `${exceptionsPath}/${at}`, { body: { digest, reason, expireTime: `${expireTime}:00Z` } })
    },
  },
  end: {
    button: words.revoke,
    text: words.revokeExceptionText,
    isOver: ({ revokeTime, expireTime }) => Boolean(revokeTime) || Date.parse(expireTime) <= Date.now(),
    send: async ({ uid }) => {
      await ask('POST', `${exceptionsPath}/${uid}:revoke`, { body: {} })
    },
  },
}
