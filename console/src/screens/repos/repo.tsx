// Tabs of a repository: tags in pages, history, readme, pull command, and settings.
import { paths } from '../../app/paths.ts'
import type { Repo } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Digest } from '../../ui/text.tsx'
import { repoWords } from '../../words/repos.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { readMoves } from '../tags/moves.ts'
import { When } from '../tags/when.tsx'
import { Pull } from './pull.tsx'
import { Readme } from './readme.tsx'
import { RepoFrame } from './repo-frame.tsx'
import { RepoSettings } from './settings.tsx'
import { Tags } from './tags.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

export function TagsScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="tags">
      {({ item }) => <Tags names={names} repo={item} query={query} />}
    </RepoFrame>
  )
}

export function RepoHistoryScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="history">
      {({ item }) => <RepoHistory names={names} repo={item} />}
    </RepoFrame>
  )
}

export function ReadmeScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="readme">
      {({ item }) => <Readme repo={item.uid} />}
    </RepoFrame>
  )
}

export function PullScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="pull">
      {({ item }) => <Pull names={names} repo={item} />}
    </RepoFrame>
  )
}

export function RepoSettingsScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="settings">
      {({ item }, { reload }) => <RepoSettings names={names} repo={item} onChange={reload} />}
    </RepoFrame>
  )
}

type HistoryProps = { names: readonly string[]; repo: Repo; after?: string }

/** Tag history of a repository, newest entry first, in pages. */
function RepoHistory({ names, repo, after = '' }: HistoryProps) {
  const page = useLoad(`history ${repo.uid} ${after}`, (signal) => readMoves(repo.uid, { after, size: 100 }, signal))
  return (
    <Shown of={page}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{repoWords.noRepoHistory}</Empty>}
          {items.length > 0 && (
            <Table
              caption={repoWords.tagHistory}
              items={items}
              keyOf={({ tag, time }) => `${tag} ${time}`}
              columns={[
                {
                  title: words.tag,
                  isHead: true,
                  cell: ({ tag, time }) => (
                    <a data-main href={paths.tag(names, tag, { at: time })}>
                      <bdi>{tag}</bdi>
                    </a>
                  ),
                },
                { title: words.event, cell: ({ event }) => tagWords.tagEvents[event] ?? event },
                {
                  title: words.digest,
                  cell: ({ digest }) => <Digest of={digest} href={paths.digest(names, digest)} />,
                },
                { title: words.time, cell: (move) => <When move={move} /> },
                { title: words.actor, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
                { title: tagWords.source, cell: ({ source }) => tagWords.sources[source] },
              ]}
            />
          )}
          <More next={next} label={words.showOlder}>
            {(rest) => <RepoHistory names={names} repo={repo} after={rest} />}
          </More>
        </>
      )}
    </Shown>
  )
}
