// Cooldown policies: minimum ages, the identities that they apply to, and exemptions.
import type { PullRule } from '../../data/types.ts'
import { cooldownWords } from '../../words/cooldown.ts'
import { ruleWords } from '../../words/rules.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { createExemptionKind } from './exemptions.tsx'
import { ModeBadge } from './mode-badge.tsx'
import {
  type At,
  type Kind,
  linesOf,
  Rules,
  ScopedList,
  sendTo,
  tagFields,
  tagsColumn,
  type Values,
} from './scoped-list.tsx'

export function CooldownPolicies({ at, query }: { at: At; query: URLSearchParams }) {
  return (
    <Rules at={at} query={query} text={cooldownWords.cooldownText}>
      {(asked) => (
        <>
          <ScopedList at={at} kind={pullRules} />
          <ScopedList at={at} kind={{ ...exemptions, ...asked }} />
        </>
      )}
    </Rules>
  )
}

const path = '/registry/v2/pullRules'
const sent = sendTo(path)
const modes = ['OBSERVE', 'SERVE_OLDER', 'DENY'] as const
const modeKinds = { MODE_UNSPECIFIED: 'plain', OBSERVE: 'warn', SERVE_OLDER: 'good', DENY: 'good' } as const
const countFroms = ['TAG', 'REPO'] as const

const pullRules: Kind<PullRule> = {
  title: cooldownWords.cooldownPolicies,
  empty: cooldownWords.noCooldownPolicies,
  path,
  member: 'pullRules',
  nameOf: ({ name, minAge }) => name || minAge,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name || words.unnamed}</bdi> },
    tagsColumn,
    {
      title: cooldownWords.appliesTo,
      cell: ({ identities, belowGroup }) =>
        belowGroup ? (
          <code title={belowGroup}>{cooldownWords.allInGroup(belowGroup.slice(-16))}</code>
        ) : (
          <span title={identities.join('\n')}>{cooldownWords.identityCount(identities.length)}</span>
        ),
    },
    { title: cooldownWords.minAge, cell: ({ minAge }) => <bdi>{minAge}</bdi> },
    {
      title: cooldownWords.tooYoungImages,
      cell: ({ mode }) => <ModeBadge kind={modeKinds[mode]} text={cooldownWords.cooldownModes[mode]} />,
    },
  ],
  create: {
    summary: cooldownWords.newCooldownPolicy,
    button: words.create,
    fields: fieldsOf,
    send: sent.create(bodyOf),
  },
  update: sent.update(bodyOf),
  end: { button: words.delete, text: cooldownWords.deleteCooldownText, send: sent.delete },
}

function fieldsOf(rule?: PullRule) {
  return [
    { name: 'name', label: words.name, value: rule?.name ?? '', isOptional: true },
    ...tagFields(rule),
    {
      name: 'identities',
      label: cooldownWords.identitiesOfPolicy,
      hint: ruleWords.uidsHint,
      type: 'lines',
      value: rule?.identities.join('\n') ?? '',
      isOptional: true,
    },
    { name: 'belowGroup', label: cooldownWords.groupOfIdentities, value: rule?.belowGroup ?? '', isOptional: true },
    { name: 'minAge', label: cooldownWords.minAge, hint: tagWords.ageHint, value: rule?.minAge ?? '7d' },
    { name: 'hold', label: cooldownWords.holdAge, hint: tagWords.holdHint, value: rule?.hold ?? '', isOptional: true },
    {
      name: 'countFrom',
      label: cooldownWords.countFrom,
      type: 'select',
      value: rule?.countFrom ?? 'TAG',
      options: countFroms.map((value) => ({ value, label: cooldownWords.countFroms[value] })),
    },
    {
      name: 'mode',
      label: cooldownWords.tooYoungImages,
      type: 'select',
      value: rule?.mode ?? 'OBSERVE',
      options: modes.map((value) => ({ value, label: cooldownWords.cooldownModes[value] })),
    },
  ] as const
}

function bodyOf({ tags, exceptTags, identities, ...plain }: Values): object {
  return { ...plain, tags: linesOf(tags), exceptTags: linesOf(exceptTags), identities: linesOf(identities) }
}

const exemptions = createExemptionKind({
  path: '/registry/v2/pullRuleExceptions',
  member: 'pullRuleExceptions',
  empty: cooldownWords.noCooldownExemptions,
  untilHint: cooldownWords.atMost30Days,
  revokeText: cooldownWords.revokeCooldownText,
})
