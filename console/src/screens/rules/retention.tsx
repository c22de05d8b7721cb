// Retention of a group or repository: policies, tag protection rules, legal holds, quarantines and plans.
import { ask } from '../../data/api.ts'
import type { Hold, Quarantined, RetentionRule, TagRule } from '../../data/types.ts'
import type { Column } from '../../ui/table.tsx'
import { Badge, Digest, Time } from '../../ui/text.tsx'
import { retentionWords } from '../../words/retention.ts'
import { ruleWords } from '../../words/rules.ts'
import { words } from '../../words.ts'
import { ModeBadge } from './mode-badge.tsx'
import { Plans } from './plans.tsx'
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

export function Retention({ at, query }: { at: At; query: URLSearchParams }) {
  return (
    <Rules at={at} query={query} text={retentionWords.retentionText}>
      {(asked) => (
        <>
          <ScopedList at={at} kind={retentionRules} />
          <ScopedList at={at} kind={tagRules} />
          <ScopedList at={at} kind={{ ...holds, ...asked }} />
          <ScopedList at={at} kind={{ ...quarantined, ...asked }} />
          <Plans at={at.uid} chosen={query.get('plan') ?? ''} />
        </>
      )}
    </Rules>
  )
}

const retention = sendTo('/registry/v2/retentionRules')

const retentionRules: Kind<RetentionRule> = {
  title: retentionWords.retentionPolicies,
  empty: retentionWords.noRetentionPolicies,
  path: '/registry/v2/retentionRules',
  member: 'retentionRules',
  nameOf: ({ name, tags }) => name || tags.join(', ') || ruleWords.allTags,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name || words.unnamed}</bdi> },
    tagsColumn as Column<RetentionRule>,
    {
      title: retentionWords.keeps,
      cell: (rule) => (
        <ul class="plain">
          {keepsOf(rule).map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      ),
    },
    { title: words.state, cell: ({ mode }) => <ModeBadge kind={modeKinds[mode]} text={ruleWords.ruleModes[mode]} /> },
  ],
  create: {
    summary: retentionWords.newRetentionPolicy,
    button: words.create,
    fields: (rule) => [
      { name: 'name', label: words.name, value: rule?.name ?? '', isOptional: true },
      ...tagFields(rule),
      count('keepDaysAfter', retentionWords.keepDaysAfter, rule?.keepDaysAfter),
      count('keepLast', retentionWords.keepLast, rule?.keepLast),
      count('untaggedDays', retentionWords.untaggedDays, rule?.untaggedDays),
      { name: 'forever', label: retentionWords.keepForever, type: 'check', value: rule?.forever ? 'yes' : '' },
      {
        name: 'mode',
        label: words.state,
        type: 'select',
        value: rule?.mode ?? 'DRY_RUN',
        options: modes.map((value) => ({ value, label: ruleWords.ruleModes[value] })),
      },
    ],
    send: retention.create(retentionOf),
  },
  update: retention.update(retentionOf),
  end: { button: words.delete, text: retentionWords.deleteRetentionText, send: retention.delete },
}

const modes = ['OFF', 'DRY_RUN', 'ENFORCE'] as const
const modeKinds = { MODE_UNSPECIFIED: 'plain', OFF: 'plain', DRY_RUN: 'warn', ENFORCE: 'good' } as const

const count = (name: string, label: string, value: number | undefined) =>
  ({ name, label, type: 'number', value: value ? String(value) : '', isOptional: true }) as const

function retentionOf({ name, tags, exceptTags, keepDaysAfter, keepLast, untaggedDays, forever, mode }: Values): object {
  return {
    ...{ name, mode, tags: linesOf(tags), exceptTags: linesOf(exceptTags), forever: forever === 'yes' },
    ...{ keepDaysAfter: Number(keepDaysAfter), keepLast: Number(keepLast), untaggedDays: Number(untaggedDays) },
  }
}

function keepsOf({ forever, keepDaysAfter, keepLast, untaggedDays }: RetentionRule): string[] {
  return [
    ...(forever ? [retentionWords.keepsForever] : []),
    ...(keepDaysAfter > 0 ? [retentionWords.keepsDays(keepDaysAfter)] : []),
    ...(keepLast > 0 ? [retentionWords.keepsLast(keepLast)] : []),
    ...(untaggedDays > 0 ? [retentionWords.keepsUntagged(untaggedDays)] : []),
  ]
}

const tagRule = sendTo('/registry/v2/tagRules')

const tagRules: Kind<TagRule> = {
  title: retentionWords.tagRules,
  empty: retentionWords.noTagRules,
  path: '/registry/v2/tagRules',
  member: 'tagRules',
  nameOf: ({ name, tags }) => name || tags.join(', ') || ruleWords.allTags,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name || words.unnamed}</bdi> },
    tagsColumn as Column<TagRule>,
    {
      title: retentionWords.protection,
      cell: ({ immutable, movers }) =>
        immutable ? (
          <Badge kind="good">{retentionWords.immutable}</Badge>
        ) : (
          <>
            {movers.length > 0 && retentionWords.onlyBy}{' '}
            {movers.map((uid) => (
              <code key={uid} title={uid}>
                {uid.slice(-16)}{' '}
              </code>
            ))}
          </>
        ),
    },
  ],
  create: {
    summary: retentionWords.newTagRule,
    button: words.create,
    fields: (rule) => [
      { name: 'name', label: words.name, value: rule?.name ?? '', isOptional: true },
      ...tagFields(rule),
      { name: 'immutable', label: retentionWords.immutable, type: 'check', value: rule?.immutable ? 'yes' : '' },
      { name: 'keepListed', label: retentionWords.keepListed, type: 'check', value: rule?.keepListed ? 'yes' : '' },
      {
        name: 'movers',
        label: retentionWords.onlyUpdatedBy,
        hint: ruleWords.uidsHint,
        type: 'lines',
        value: rule?.movers.join('\n') ?? '',
        isOptional: true,
      },
    ],
    send: tagRule.create(tagRuleOf),
  },
  update: tagRule.update(tagRuleOf),
  end: { button: words.delete, text: retentionWords.deleteTagRuleText, send: tagRule.delete },
}

function tagRuleOf({ name, tags, exceptTags, immutable, movers, keepListed }: Values): object {
  return {
    name,
    tags: linesOf(tags),
    exceptTags: linesOf(exceptTags),
    immutable: immutable === 'yes',
    keepListed: keepListed === 'yes',
    movers: linesOf(movers),
  }
}

const holds: Kind<Hold> = {
  title: retentionWords.holds,
  empty: retentionWords.noHolds,
  path: '/registry/v2/holds',
  member: 'holds',
  nameOf: ({ digest, tags }) => digest || tags.join(', '),
  columns: [
    {
      title: retentionWords.heldDigestOrTags,
      isHead: true,
      cell: ({ digest, tags }) => (digest ? <Digest of={digest} /> : <bdi>{tags.join(', ')}</bdi>),
    },
    ...sinceColumns<Hold>(),
  ],
  create: {
    summary: retentionWords.newHold,
    button: retentionWords.hold,
    fields: () => [
      { name: 'digest', label: words.digest, isOptional: true },
      {
        name: 'tags',
        label: retentionWords.holdTags,
        hint: retentionWords.holdTagsHint,
        type: 'lines',
        isOptional: true,
      },
      { name: 'reason', label: words.reason },
    ],
    send: async (at, { digest, tags, reason }) => {
      await ask('POST', `/registry/v2/holds/${at}`, {
        body: { ...(digest && { digest }), tags: linesOf(tags), reason },
      })
    },
  },
  end: {
    button: retentionWords.release,
    text: retentionWords.releaseHoldText,
    isOver: ({ releaseTime }) => Boolean(releaseTime),
    send: async ({ uid }) => {
      await ask('POST', `/registry/v2/holds/${uid}:release`, { body: {} })
    },
  },
}

const quarantined: Kind<Quarantined> = {
  title: retentionWords.quarantined,
  empty: retentionWords.noQuarantined,
  path: '/registry/v2/quarantined',
  member: 'quarantined',
  nameOf: ({ digest }) => digest,
  columns: [
    { title: words.digest, isHead: true, cell: ({ digest }) => <Digest of={digest} /> },
    ...sinceColumns<Quarantined>(),
  ],
  create: {
    summary: retentionWords.newQuarantine,
    button: retentionWords.quarantine,
    fields: () => [
      { name: 'digest', label: words.digest },
      { name: 'reason', label: words.reason, hint: retentionWords.quarantineHint },
    ],
    send: async (at, { digest, reason }) => {
      await ask('POST', `/registry/v2/quarantined/${at}:quarantine`, { body: { digest, reason } })
    },
  },
  end: {
    button: retentionWords.release,
    text: retentionWords.releaseQuarantineText,
    isOver: ({ releaseTime }) => Boolean(releaseTime),
    send: async ({ uid }) => {
      await ask('POST', `/registry/v2/quarantined/${uid}:release`, { body: {} })
    },
  },
}

type Since = { uid: string; reason: string; createTime: string; releaseTime: string }

function sinceColumns<T extends Since>(): Column<T>[] {
  return [
    { title: words.reason, cell: ({ reason }) => <bdi>{reason}</bdi> },
    { title: words.from, cell: ({ createTime }) => <Time at={createTime} /> },
    { title: words.to, cell: ({ releaseTime }) => (releaseTime ? <Time at={releaseTime} /> : retentionWords.active) },
  ]
}
