// Tags of an organization that were updated last, with the change of their vulnerabilities.
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { TagUpdate } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { ScanResult } from '../../ui/findings.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Copy, Digest } from '../../ui/text.tsx'
import { overviewWords } from '../../words/overview.ts'
import { startWords } from '../../words/start.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { Panel } from './panel.tsx'

type Props = { names: readonly string[]; group: string }

export function UpdatesPanel({ names, group }: Props) {
  const read = useLoad(`tag updates ${group}`, (signal) =>
    ask<{ updates: TagUpdate[] }>('GET', `/registry/v2/tagUpdates/${group}`, { signal }),
  )
  const link = { text: overviewWords.allRepositories, href: paths.group(names, 'repositories') }
  return (
    <Panel title={startWords.recentUpdates} link={link} isWide>
      <Shown of={read}>
        {({ updates }) =>
          updates.length === 0 ? (
            <Empty command={`docker push ${me.host}/${names[0]}/NAME:TAG`}>{startWords.noTagsAnywhere}</Empty>
          ) : (
            <Table
              caption={startWords.recentUpdates}
              items={updates}
              keyOf={({ repoUid, tag }) => `${repoUid} ${tag}`}
              columns={columns}
            />
          )
        }
      </Shown>
    </Panel>
  )
}

const namesOf = ({ path }: TagUpdate): readonly string[] => path.split('/')

const columns: Column<TagUpdate>[] = [
  {
    title: words.tag,
    isHead: true,
    cell: (one) => (
      <a data-main href={paths.tag(namesOf(one), one.tag)}>
        <bdi>
          {namesOf(one).slice(1).join('/')}:{one.tag}
        </bdi>
      </a>
    ),
  },
  { title: words.digest, cell: (one) => <Digest of={one.digest} href={paths.digest(namesOf(one), one.digest)} /> },
  {
    title: words.vulnerabilities,
    cell: (one) => (
      <ScanResult counts={one.vulnerabilities} coverage={one.coverage} href={paths.digest(namesOf(one), one.digest)} />
    ),
  },
  { title: overviewWords.changeOfTag, cell: (one) => <Change of={one} /> },
  { title: words.updatedAt, cell: ({ updateTime }) => <Ago at={updateTime} /> },
  { title: startWords.updatedBy, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
  {
    title: words.copy,
    cell: (one) => (
      <Copy isPin text={pinOf(namesOf(one), one.digest)} label={tagWords.copyWithDigestOf(one.tag)}>
        {tagWords.copyWithDigest}
      </Copy>
    ),
  },
]

const severities = ['critical', 'high', 'medium', 'unknown', 'low'] as const

/** Change of the highest severity that has changed. Green only if no severity got worse and everything was scanned. */
function Change({ of: { vulnerabilities: now, previousVulnerabilities: before, coverage } }: { of: TagUpdate }) {
  if (!now || !before) return <span class="dim">–</span>
  const changes = severities.map((name) => ({ name, by: now[name] - before[name] })).filter(({ by }) => by !== 0)
  const [worst] = changes.filter(({ by }) => by > 0)
  const [first] = changes
  if (!first) return <span class="dim">{overviewWords.noChangeOfTag}</span>
  const { name, by } = worst ?? first
  const kind = worst ? 'bad' : coverage?.state === 'COMPARED' ? 'good' : 'plain'
  return <Badge kind={kind}>{overviewWords.changeBy(by, words.severities[name]!)}</Badge>
}
