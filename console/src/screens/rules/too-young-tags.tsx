// Tags of a repository that cooldown policies hold back now. Includes policies that only observe.
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { isAbout } from '../../data/patterns.ts'
import { readScoped, whereOf } from '../../data/scoped.ts'
import type { PullRule, Resolution, Tag } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Digest, Time } from '../../ui/text.tsx'
import { cooldownWords } from '../../words/cooldown.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { ModeBadge } from './mode-badge.tsx'

const checkedTags = 10

type Props = { names: readonly string[]; repo: string }
type Held = { tag: string; rule: PullRule; answer: Partial<Resolution> }

export function TooYoungTags(props: Props) {
  return can('registry.settings.update', props.repo) && can('tag.list', props.repo) ? (
    <TooYoungTagList {...props} />
  ) : null
}

function TooYoungTagList({ names, repo }: Props) {
  const read = useLoad(`too young tags ${repo}`, async (signal) => {
    const { items } = await readScoped<PullRule>('/registry/v2/pullRules', 'pullRules', { scope: repo, signal })
    const rules = items.filter(({ uid }) => whereOf(uid, repo) !== 'below')
    const query = { 'uidp.childrenOf': repo, orderBy: 'update_time desc' }
    const { items: tags } = await readPage<Tag>('/registry/v2/tags', 'tags', { size: checkedTags, query, signal })
    const pairs = rules.flatMap((rule) => tags.filter(({ name }) => isAbout(rule, name)).map((tag) => ({ rule, tag })))
    const found = pairs.map(async ({ rule, tag: { name, digest } }): Promise<Held[]> => {
      const path = `/registry/v2/repos/${repo}/resolvedTags/${encodeURIComponent(name)}`
      const asked = { query: { pullRuleUid: rule.uid }, signal }
      const answer = await ask<Partial<Resolution>>('GET', path, asked)
      return answer.chosen?.digest === digest ? [] : [{ tag: name, rule, answer }]
    })
    return { held: (await Promise.all(found)).flat(), count: tags.length }
  })
  return (
    <>
      <h2>{cooldownWords.tooYoungTags}</h2>
      <Shown of={read}>
        {({ held, count }) =>
          held.length === 0 ? (
            <Empty>{cooldownWords.allOldEnough(count)}</Empty>
          ) : (
            <Table
              caption={cooldownWords.tooYoungTags}
              columns={columnsFor(names)}
              items={held}
              keyOf={({ tag, rule }) => `${tag} ${rule.uid}`}
            />
          )
        }
      </Shown>
    </>
  )
}

const columnsFor = (names: readonly string[]): Column<Held>[] => [
  {
    title: words.tag,
    isHead: true,
    cell: ({ tag }) => (
      <a data-main href={paths.tag(names, tag)}>
        <bdi>{tag}</bdi>
      </a>
    ),
  },
  { title: words.policy, cell: ({ rule: { name, minAge } }) => <bdi>{name || minAge}</bdi> },
  {
    title: cooldownWords.tooYoungImages,
    cell: ({ rule: { mode } }) => (
      <ModeBadge kind={mode === 'OBSERVE' ? 'warn' : 'bad'} text={cooldownWords.cooldownModes[mode]} />
    ),
  },
  {
    title: cooldownWords.newestOldEnough,
    cell: ({ answer: { chosen, reason = '' } }) =>
      chosen ? (
        <Digest of={chosen.digest} href={paths.digest(names, chosen.digest)} />
      ) : (
        (tagWords.viewReasons[reason] ?? reason)
      ),
  },
  { title: tagWords.eligibleFrom, cell: ({ answer: { next } }) => <Time at={next?.eligibleTime} /> },
]
